// SPDX-License-Identifier: MIT
//
// libcurl's options are set and read through variadic functions, which Swift cannot call: one typed function for each
// type of argument. See curl_easy_setopt(3), curl_easy_getinfo(3), curl_multi_setopt(3), curl_share_setopt(3).

#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

#include <curl/curl.h>
#include <stdbool.h>
#include <strings.h>

// The macros of typecheck-gcc.h would refuse an option that is a variable.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt
#undef curl_share_setopt

extern char **environ;

// Whether a variable of the environment may name a proxy: faster than to ask for each by getenv(3). See libcurl-env(3).
static inline bool ccurl_environment_names_proxy(void) {
    for (char **entry = environ; entry && *entry; entry++) {
        const char *name = *entry;
        if ((name[0] | 0x20) == 'a' && (name[1] | 0x20) == 'l') {
            if (!strncasecmp(name, "all_proxy=", 10)) return true;
        } else if ((name[0] | 0x20) == 'h' && (name[1] | 0x20) == 't') {
            if (!strncasecmp(name, "http_proxy=", 11) || !strncasecmp(name, "https_proxy=", 12)) return true;
        }
    }
    return false;
}

static inline CURLcode ccurl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(handle, option, value);
}

// The blob is copied, so that its bytes need not outlive the call.
static inline CURLcode ccurl_set_blob(CURL *handle, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {.data = (void *)bytes, .len = count, .flags = CURL_BLOB_COPY};
    return curl_easy_setopt(handle, option, &blob);
}

// The context is what was set with the callback, and never null.
typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *_Nonnull context);
typedef int (*ccurl_seek_callback)(void *_Nonnull context, curl_off_t offset, int origin);
typedef curl_socket_t (*ccurl_open_callback)(void *_Nonnull context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*ccurl_close_callback)(void *context, curl_socket_t socket);
typedef int (*ccurl_prerequest_callback)(
    void *_Nonnull context, char *remote, char *local, int remote_port, int local_port);
typedef int (*ccurl_debug_callback)(
    CURL *handle, curl_infotype kind, char *_Nonnull bytes, size_t size, void *_Nonnull context);
typedef int (*ccurl_progress_callback)(
    void *_Nonnull context, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
typedef int (*ccurl_resolver_callback)(void *state, void *reserved, void *_Nonnull context);
typedef int (*ccurl_trailer_callback)(struct curl_slist **list, void *_Nonnull context);
typedef CURLcode (*ccurl_tls_callback)(CURL *handle, void *_Nonnull tls, void *_Nonnull context);

static inline CURLcode ccurl_set_data_callback(CURL *handle, CURLoption option, ccurl_data_callback callback) {
    return curl_easy_setopt(handle, option, callback);
}

static inline CURLcode ccurl_set_seek_callback(CURL *handle, ccurl_seek_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, callback);
}

static inline CURLcode ccurl_set_open_callback(CURL *handle, ccurl_open_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline CURLcode ccurl_set_close_callback(CURL *handle, ccurl_close_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

static inline CURLcode ccurl_set_prerequest_callback(CURL *handle, ccurl_prerequest_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode ccurl_set_progress_callback(CURL *handle, ccurl_progress_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, callback);
}

static inline CURLcode ccurl_set_debug_callback(CURL *handle, ccurl_debug_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_DEBUGFUNCTION, callback);
}

static inline CURLcode ccurl_set_resolver_callback(CURL *handle, ccurl_resolver_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_RESOLVER_START_FUNCTION, callback);
}

static inline CURLcode ccurl_set_trailer_callback(CURL *handle, ccurl_trailer_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_TRAILERFUNCTION, callback);
}

static inline CURLcode ccurl_set_tls_callback(CURL *handle, ccurl_tls_callback callback) {
    return curl_easy_setopt(handle, CURLOPT_SSL_CTX_FUNCTION, callback);
}

static inline CURLcode ccurl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_string(CURL *handle, CURLINFO info, const char **value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_pointer(CURL *handle, CURLINFO info, void **value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_get_socket(CURL *handle, curl_socket_t *value) {
    return curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, value);
}

static inline CURLcode ccurl_get_list(CURL *handle, CURLINFO info, struct curl_slist **value) {
    return curl_easy_getinfo(handle, info, value);
}

// The library's own session of the connection in use: an `SSL *` where libcurl is built with OpenSSL.
static inline void *ccurl_tls_session(CURL *handle) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(handle, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return NULL;
    return session->backend == CURLSSLBACKEND_OPENSSL ? session->internals : NULL;
}

typedef int (*ccurl_socket_callback)(CURL *easy, curl_socket_t socket, int what, void *context, void *socket_context);
typedef int (*ccurl_timer_callback)(CURLM *multi, long milliseconds, void *context);

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_set_socket_callback(CURLM *multi, ccurl_socket_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
}

static inline CURLMcode ccurl_multi_set_timer_callback(CURLM *multi, ccurl_timer_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
    return code != CURLM_OK ? code : curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
}

static inline CURLSHcode ccurl_share(CURLSH *share, curl_lock_data what) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, what);
}

static inline CURLSHcode ccurl_share_set_locks(
    CURLSH *share, curl_lock_function lock, curl_unlock_function unlock, void *context
) {
    CURLSHcode code = curl_share_setopt(share, CURLSHOPT_USERDATA, context);
    if (code == CURLSHE_OK) code = curl_share_setopt(share, CURLSHOPT_LOCKFUNC, lock);
    return code != CURLSHE_OK ? code : curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, unlock);
}

// A finished transfer, without the union that CURLMsg keeps its result in; false when there is none.
static inline _Bool ccurl_next_finished(CURLM *multi, CURL **handle, CURLcode *result) {
    int left = 0;
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE) continue;
        *handle = message->easy_handle;
        *result = message->data.result;
        return 1;
    }
    return 0;
}

// Macros that Swift does not import: they cast.
static const size_t CCURL_WRITE_PAUSE = CURL_WRITEFUNC_PAUSE;
static const size_t CCURL_READ_PAUSE = CURL_READFUNC_PAUSE;
static const size_t CCURL_READ_ABORT = CURL_READFUNC_ABORT;
static const long CCURL_AUTH_BASIC = (long)CURLAUTH_BASIC;
static const long CCURL_AUTH_DIGEST = (long)CURLAUTH_DIGEST;
static const long CCURL_AUTH_NTLM = (long)CURLAUTH_NTLM;
static const long CCURL_AUTH_NEGOTIATE = (long)CURLAUTH_NEGOTIATE;
static const CURLversion CCURL_VERSION_NOW = CURLVERSION_NOW;
static const curl_socket_t CCURL_SOCKET_TIMEOUT = CURL_SOCKET_TIMEOUT;
static const curl_socket_t CCURL_SOCKET_BAD = CURL_SOCKET_BAD;
static const int CCURL_SOCK_CLOEXEC = SOCK_CLOEXEC;
static const long CCURL_GLOBAL_DEFAULT = CURL_GLOBAL_DEFAULT;
static const long CCURL_HTTP_VERSION_1_1 = CURL_HTTP_VERSION_1_1;
static const long CCURL_HTTP_VERSION_2TLS = CURL_HTTP_VERSION_2TLS;
static const long CCURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
static const long CCURL_HTTP_VERSION_3 = CURL_HTTP_VERSION_3;
// CURL_HTTP_VERSION_3ONLY, introduced in libcurl 7.88.
static const long CCURL_HTTP_VERSION_3ONLY = 31L;

#endif
