// SPDX-License-Identifier: MIT
//
// OpenSSL's macros and variadic functions, as functions that Swift can call.

#ifndef COPENSSL_SHIM_H
#define COPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// A macro over SSL_CTX_ctrl.
static inline int copenssl_ctx_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

// A macro over SSL_CTX_ctrl.
static inline int copenssl_ctx_set_max_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

// A macro over SSL_CTX_ctrl; the context gets a reference of its own.
static inline int copenssl_ctx_add1_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

// EVP_EC_gen is a macro over a variadic function.
static inline EVP_PKEY *copenssl_generate_p256_key(void) {
    return EVP_EC_gen("P-256");
}

// A macro over BIO_ctrl; the bytes belong to the BIO.
static inline long copenssl_bio_bytes(BIO *bio, char **bytes) {
    return BIO_get_mem_data(bio, bytes);
}

// A macro over SSL_ctrl.
static inline void copenssl_accept_moving_writes(SSL *session) {
    SSL_set_mode(session, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

// X509V3_set_ctx is a function, but the database that it leaves unset is cleared by a macro.
static inline X509V3_CTX copenssl_extension_context(X509 *issuer, X509 *subject) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, subject, NULL, NULL, 0);
    X509V3_set_ctx_nodb(&context);
    return context;
}

// Macros over SSL_CTX_ctrl and SSL_CTX_callback_ctrl: the client asks for an OCSP response, and is called when the
// server's flight is complete, with a response or without one.
static inline void copenssl_ctx_ask_for_staple(SSL_CTX *context, int (*callback)(SSL *, void *), void *argument) {
    SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
    SSL_CTX_set_tlsext_status_cb(context, callback);
    SSL_CTX_set_tlsext_status_arg(context, argument);
}

// A macro over SSL_ctrl; the bytes belong to the session.
static inline long copenssl_staple(SSL *session, const unsigned char **bytes) {
    return SSL_get_tlsext_status_ocsp_resp(session, bytes);
}

// Macros over SSL_CTX_callback_ctrl and SSL_CTX_ctrl: the server is called when a client asks for an OCSP response.
static inline void copenssl_ctx_answer_with_staple(SSL_CTX *context, int (*callback)(SSL *, void *), void *argument) {
    SSL_CTX_set_tlsext_status_cb(context, callback);
    SSL_CTX_set_tlsext_status_arg(context, argument);
}

// A macro over SSL_ctrl; the session frees the copy of the bytes.
static inline int copenssl_set_staple(SSL *session, const void *bytes, size_t count) {
    void *copy = OPENSSL_memdup(bytes, count);
    if (copy == NULL) return 0;
    if (SSL_set_tlsext_status_ocsp_resp(session, copy, count) == 1) return 1;
    OPENSSL_free(copy);
    return 0;
}

// A macro over a type-safe wrapper: frees the certificates with their stack.
static inline void copenssl_chain_free(STACK_OF(X509) *chain) {
    sk_X509_pop_free(chain, X509_free);
}

// An option that is 64 bits wide and made by a macro that casts.
static const uint64_t COPENSSL_OP_DONT_INSERT_EMPTY_FRAGMENTS = SSL_OP_DONT_INSERT_EMPTY_FRAGMENTS;

// Macros that Swift does not import: they cast.
static const unsigned long COPENSSL_NAME_RFC2253 = XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB;
static const unsigned long COPENSSL_V_FLAG_PARTIAL_CHAIN = X509_V_FLAG_PARTIAL_CHAIN;
static const unsigned long COPENSSL_V_FLAG_CRL_CHECK = X509_V_FLAG_CRL_CHECK;
static const unsigned long COPENSSL_V_FLAG_CRL_CHECK_ALL = X509_V_FLAG_CRL_CHECK_ALL;

#endif
