// SPDX-License-Identifier: MIT

// An HTTP/1.1 server for workloads that nginx does not support:
//
//     GET    responds two seconds after the request, for any number of concurrent requests;
//     PUT    responds when the body was read; the body is discarded and not written to disk.
//
// A GET request with Sec-WebSocket-Key becomes a WebSocket connection (RFC 6455), on which the payload of each frame
// returns in a binary frame; a frame may have at most 125 bytes of payload.
//
// It prints its port and exits when its standard input ends. Bodies require a Content-Length.

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 65536, MAX_HEAD = 4096, DELAY_MS = 2000, BACKLOG = 8192, EVENTS = 512 };

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 59\r\n\r\n"
    "{\"id\": 7, \"name\": \"Ada Lovelace\", \"email\": \"ada@localhost\"}";

struct connection {
    int descriptor;
    // The number of bytes of the body to read; 0 while a head is read.
    int64_t body;
    size_t head_length;
    char head[MAX_HEAD + 1];
    // Distinguishes a connection from an earlier one with the same descriptor.
    uint64_t number;
    // Whether frames are exchanged; the head then holds the beginning of a frame.
    bool is_web_socket;
};

// The connections, indexed by descriptor.
static struct connection *connections[MAX_FILES];
static uint64_t last_number;

// The pending GET requests in order of arrival, which is also the order of their due times.
static struct due {
    int64_t at;
    int descriptor;
    uint64_t number;
} queue[MAX_FILES];
static unsigned first_due, end_due;

static int epoll;
static char buffer[512 * 1024];

static int64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

static void accept_all(int listener) {
    int descriptor;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *connection = descriptor < MAX_FILES ? malloc(sizeof *connection) : NULL;
        if (!connection) fail("accept");
        connection->descriptor = descriptor;
        connection->body = 0;
        connection->head_length = 0;
        connection->number = ++last_number;
        connection->is_web_socket = false;
        connections[descriptor] = connection;
        watch(descriptor);
    }
}

static void close_connection(struct connection *connection) {
    connections[connection->descriptor] = NULL;
    close(connection->descriptor);
    free(connection);
}

static void send_answer(struct connection *connection) {
    if (send(connection->descriptor, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) close_connection(connection);
}

// Sends all bytes, and waits while the socket accepts none. Returns whether all were sent.
static bool send_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(descriptor, bytes, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) return false;
        if (sent < 0) {
            struct pollfd writable = {.fd = descriptor, .events = POLLOUT};
            poll(&writable, 1, -1);
            continue;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

// Accepts a WebSocket connection (RFC 6455 §4.2.2). Returns whether the key is valid and the response was sent.
static bool accept_web_socket(struct connection *connection, const char *key) {
    char text[128], encoded[32], response[256];
    unsigned char digest[SHA_DIGEST_LENGTH];
    key += strspn(key, " ");
    int length = snprintf(
        text, sizeof text, "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", (int)strcspn(key, " \r"), key);
    if (length >= (int)sizeof text) return false;
    SHA1((unsigned char *)text, (size_t)length, digest);
    EVP_EncodeBlock((unsigned char *)encoded, digest, sizeof digest);
    length = snprintf(
        response, sizeof response,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\n\r\n", encoded);
    connection->is_web_socket = true;
    return send_all(connection->descriptor, response, (size_t)length);
}

// Sends the payloads of complete frames back. Returns whether the frames are valid and the connection is open.
static bool echo(struct connection *connection, const char *bytes, size_t count) {
    // Mask and length take six bytes of a received frame, and the length takes two of a sent one.
    static char frames[MAX_HEAD + sizeof buffer], echoes[sizeof frames];
    memcpy(frames, connection->head, connection->head_length);
    memcpy(frames + connection->head_length, bytes, count);
    count += connection->head_length;
    size_t used = 0, echoed = 0;
    bool is_open = true;
    while (is_open && count - used >= 6) {
        const char *frame = frames + used;
        size_t length = frame[1] & 0x7f;
        if (length > 125 || !(frame[1] & 0x80)) return false;
        if (count - used < 6 + length) break;
        bool is_close = (frame[0] & 0xf) == 8;
        echoes[echoed] = is_close ? (char)0x88 : (char)0x82;
        echoes[echoed + 1] = (char)length;
        for (size_t index = 0; index < length; index++) {
            echoes[echoed + 2 + index] = frame[6 + index] ^ frame[2 + index % 4];
        }
        echoed += 2 + length;
        used += 6 + length;
        is_open = !is_close;
    }
    connection->head_length = count - used;
    memcpy(connection->head, frames + used, connection->head_length);
    return send_all(connection->descriptor, echoes, echoed) && is_open;
}

static void answer_later(struct connection *connection) {
    queue[end_due++ % MAX_FILES] = (struct due){now_ms() + DELAY_MS, connection->descriptor, connection->number};
}

// Sends the responses that are due. Returns the time to wait for the next one in ms, or -1 if the queue is empty.
static int answer_due(void) {
    while (first_due != end_due) {
        struct due *due = &queue[first_due % MAX_FILES];
        int64_t wait = due->at - now_ms();
        if (wait > 0) return (int)wait;
        first_due++;
        struct connection *connection = connections[due->descriptor];
        if (connection && connection->number == due->number) send_answer(connection);
    }
    return -1;
}

// Reads bytes of the head and returns their number, or -1 if the head is too long.
static ssize_t read_head(struct connection *connection, const char *bytes, size_t count) {
    size_t before = connection->head_length;
    size_t taken = count < MAX_HEAD - before ? count : MAX_HEAD - before;
    memcpy(connection->head + before, bytes, taken);
    connection->head_length += taken;
    connection->head[connection->head_length] = 0;
    char *end = strstr(connection->head, "\r\n\r\n");
    if (!end) return connection->head_length == MAX_HEAD ? -1 : (ssize_t)taken;

    taken = (size_t)(end + 4 - connection->head) - before;
    connection->head_length = 0;
    end[2] = 0;
    char *key = strcasestr(connection->head, "\r\nSec-WebSocket-Key:");
    if (key) {
        if (!accept_web_socket(connection, key + strlen("\r\nSec-WebSocket-Key:"))) return -1;
    } else if (strncmp(connection->head, "GET ", 4) == 0) {
        answer_later(connection);
    } else {
        char *length = strcasestr(connection->head, "\r\nContent-Length:");
        connection->body = length ? atoll(length + strlen("\r\nContent-Length:")) : 0;
        if (connection->body <= 0) return -1;
    }
    return (ssize_t)taken;
}

static void read_requests(struct connection *connection) {
    ssize_t count = read(connection->descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
        close_connection(connection);
        return;
    }
    for (ssize_t used = 0; used < count;) {
        if (connection->is_web_socket) {
            if (!echo(connection, buffer + used, (size_t)(count - used))) close_connection(connection);
            return;
        }
        if (connection->body == 0) {
            ssize_t taken = read_head(connection, buffer + used, (size_t)(count - used));
            if (taken < 0) {
                close_connection(connection);
                return;
            }
            used += taken;
        } else {
            int64_t taken = connection->body < count - used ? connection->body : count - used;
            connection->body -= taken;
            used += taken;
            if (connection->body == 0) {
                send_answer(connection);
                return;
            }
        }
    }
}

static int listen_on_loopback(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, BACKLOG) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) fail("listen");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) fail("epoll_create1");
    int listener = listen_on_loopback();
    watch(listener);
    watch(STDIN_FILENO);

    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, answer_due());
        if (count < 0 && errno != EINTR) fail("epoll_wait");
        for (int index = 0; index < count; index++) {
            int descriptor = events[index].data.fd;
            if (descriptor == STDIN_FILENO) return 0;
            if (descriptor == listener) accept_all(listener);
            else if (connections[descriptor]) read_requests(connections[descriptor]);
        }
    }
}
