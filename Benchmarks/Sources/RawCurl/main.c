// SPDX-License-Identifier: MIT

// The reference: libcurl, driven efficiently from C. One thread, curl_multi_socket_action on epoll, reused handles and
// connections. Options and output are those of the Swift clients (ClientKit).

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, LARGE_BUFFER = 512 * 1024, MEGABYTE = 1024 * 1024, PAUSE_MS_PER_MEGABYTE = 5, ORDER_SIZE = 900 };

static struct {
    const char *workload, *url, *ca, *file;
    long requests, in_flight, connections, warm_up;
    bool http2;
    bool http3;
} options = {.workload = "get", .requests = 1, .in_flight = 1};

struct body {
    size_t length, capacity;
    char *bytes;
};

static int epoll;
static CURLM *multi;
static int64_t deadline_ms = -1;
static int file = -1;
static int64_t streamed;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "RawCurl: %s: %s\n", what, why);
    exit(1);
}

static void check(const char *what, int code) {
    if (code != 0) fail(what, curl_easy_strerror((CURLcode)code));
}

static void check_multi(CURLMcode code) {
    if (code != CURLM_OK) fail("curl_multi", curl_multi_strerror(code));
}

// The loop

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int on_timer(CURLM *source, long timeout_ms, void *context) {
    (void)source, (void)context;
    deadline_ms = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *is_watched) {
    (void)easy, (void)context;
    struct epoll_event event = {.data.fd = socket};
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, socket, NULL);
    } else if (is_watched) {
        epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event);
    } else {
        epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event);
        curl_multi_assign(multi, socket, &epoll);
    }
    return 0;
}

static void turn(void) {
    struct epoll_event events[EVENTS];
    int64_t wait = deadline_ms < 0 ? -1 : deadline_ms - now_ms();
    int count = epoll_wait(epoll, events, EVENTS, deadline_ms < 0 ? -1 : wait < 0 ? 0 : (int)wait);
    if (count < 0 && errno != EINTR) fail("epoll_wait", strerror(errno));

    int running;
    for (int index = 0; index < count; index++) {
        int mask = 0;
        if (events[index].events & EPOLLIN) mask |= CURL_CSELECT_IN;
        if (events[index].events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
        if (events[index].events & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
        check_multi(curl_multi_socket_action(multi, events[index].data.fd, mask, &running));
    }
    if (deadline_ms >= 0 && deadline_ms <= now_ms()) {
        deadline_ms = -1;
        check_multi(curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running));
    }
}

static void start(CURL *easy) {
    struct body *body = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &body);
    if (body) body->length = 0;
    check_multi(curl_multi_add_handle(multi, easy));
}

// Performs requests with the given handles, `in_flight` at a time.
static void perform(CURL **handles, long requests) {
    long started = 0, finished = 0;
    while (started < options.in_flight && started < requests) start(handles[started++]);
    while (finished < requests) {
        turn();
        CURLMsg *message;
        int left;
        while ((message = curl_multi_info_read(multi, &left))) {
            CURL *easy = message->easy_handle;
            check(options.url, message->data.result);
            long status = 0;
            curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
            if (status < 200 || status > 299) fail(options.url, "the status is not 2xx");
            finished++;
            check_multi(curl_multi_remove_handle(multi, easy));
            if (started < requests) {
                started++;
                start(easy);
            }
        }
    }
}

// The workloads

static size_t collect(char *bytes, size_t size, size_t count, void *context) {
    struct body *body = context;
    size_t length = size * count;
    if (length > body->capacity - body->length) {
        body->capacity = body->length + length < 1024 ? 1024 : 2 * (body->length + length);
        body->bytes = realloc(body->bytes, body->capacity);
        if (!body->bytes) return 0;
    }
    memcpy(body->bytes + body->length, bytes, length);
    body->length += length;
    return length;
}

static size_t write_to_file(char *bytes, size_t size, size_t count, void *context) {
    (void)context;
    size_t done = 0;
    while (done < size * count) {
        ssize_t written = write(file, bytes + done, size * count - done);
        if (written < 0) return 0;
        done += (size_t)written;
    }
    return done;
}

static size_t read_from_file(char *bytes, size_t size, size_t count, void *context) {
    (void)context;
    ssize_t length = read(file, bytes, size * count);
    return length < 0 ? CURL_READFUNC_ABORT : (size_t)length;
}

// With a single transfer, sleeping in the callback is sufficient backpressure.
static size_t consume_slowly(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes, (void)context;
    int64_t before = streamed / MEGABYTE;
    streamed += (int64_t)(size * count);
    int64_t pause = (streamed / MEGABYTE - before) * PAUSE_MS_PER_MEGABYTE;
    if (pause > 0) nanosleep(&(struct timespec){.tv_nsec = pause * 1000000}, NULL);
    return size * count;
}

static size_t discard(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes, (void)context;
    return size * count;
}

// Returns a body of the same size as the JSON of the other clients, which is only sent here.
static const char *order(void) {
    static char bytes[ORDER_SIZE + 1];
    memset(bytes, ' ', ORDER_SIZE);
    return bytes;
}

static CURL *make_handle(void) {
    CURL *easy = curl_easy_init();
    if (!easy) fail("curl_easy_init", "no handle");
    check("CURLOPT_URL", curl_easy_setopt(easy, CURLOPT_URL, options.url));
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    long version = options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, options.http3 ? CURL_HTTP_VERSION_3ONLY : version);
    if (options.http2 || options.http3) curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    if (options.ca) check("CURLOPT_CAINFO", curl_easy_setopt(easy, CURLOPT_CAINFO, options.ca));

    bool posts = strcmp(options.workload, "post") == 0;
    if (strcmp(options.workload, "get") == 0 || posts) {
        struct body *body = calloc(1, sizeof *body);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, body);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, body);
        if (posts) curl_easy_setopt(easy, CURLOPT_POSTFIELDS, order());
    } else if (strcmp(options.workload, "download") == 0) {
        file = open(options.file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (file < 0) fail(options.file, strerror(errno));
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)LARGE_BUFFER);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_to_file);
    } else if (strcmp(options.workload, "upload") == 0) {
        struct stat information;
        file = open(options.file, O_RDONLY | O_CLOEXEC);
        if (file < 0 || fstat(file, &information) != 0) fail(options.file, strerror(errno));
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)LARGE_BUFFER);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)information.st_size);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_from_file);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, curl_slist_append(NULL, "Expect:"));
    } else if (strcmp(options.workload, "stream") == 0) {
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, consume_slowly);
    } else {
        fail(options.workload, "no such workload");
    }
    return easy;
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double wall_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void parse(int count, char **arguments) {
    for (int index = 1; index < count; index++) {
        const char *name = arguments[index];
        if (strcmp(name, "--http2") == 0) {
            options.http2 = true;
            continue;
        }
        if (strcmp(name, "--http3") == 0) {
            options.http3 = true;
            continue;
        }
        if (index + 1 == count) fail(name, "needs a value");
        const char *value = arguments[++index];
        if (strcmp(name, "--workload") == 0) options.workload = value;
        else if (strcmp(name, "--url") == 0) options.url = value;
        else if (strcmp(name, "--requests") == 0) options.requests = atol(value);
        else if (strcmp(name, "--in-flight") == 0) options.in_flight = atol(value);
        else if (strcmp(name, "--connections") == 0) options.connections = atol(value);
        else if (strcmp(name, "--warm-up") == 0) options.warm_up = atol(value);
        else if (strcmp(name, "--ca") == 0) options.ca = value;
        else if (strcmp(name, "--file") == 0) options.file = value;
        else fail(name, "no such option");
    }
    if (!options.url) fail("--url", "is missing");
    if (options.connections == 0) options.connections = options.in_flight;
}

int main(int count, char **arguments) {
    parse(count, arguments);
    check("curl_global_init", curl_global_init(CURL_GLOBAL_ALL));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    multi = curl_multi_init();
    if (epoll < 0 || !multi) fail("start", "no epoll or no multi handle");
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, options.connections);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, options.connections);

    CURL **handles = calloc((size_t)options.in_flight, sizeof *handles);
    for (long index = 0; index < options.in_flight; index++) handles[index] = make_handle();

    perform(handles, options.warm_up);
    double cpu = cpu_seconds(), wall = wall_seconds();
    perform(handles, options.requests);
    printf("{\"requests\": %ld, \"wall_s\": %.6f, \"cpu_s\": %.6f}\n", options.requests, wall_seconds() - wall,
        cpu_seconds() - cpu);
    return 0;
}
