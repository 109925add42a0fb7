// SPDX-License-Identifier: MIT

// An HTTP/1.1 server which answers each GET two seconds after it came, however many wait at the same time.
// It prints its port, and ends when its standard input ends.

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FILES = 65536, DELAY_MS = 2000, BACKLOG = 8192, EVENTS = 512 };

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 59\r\n\r\n"
    "{\"id\": 7, \"name\": \"Ada Lovelace\", \"email\": \"ada@localhost\"}";

static struct {
    // How much of the empty line at the end of a request was seen.
    int matched;
    // Tells a connection from an earlier one with the same descriptor.
    uint32_t generation;
} connections[MAX_FILES];

// Requests in the order in which they came, which is the order in which they are due.
static struct due {
    int64_t at;
    int descriptor;
    uint32_t generation;
} queue[MAX_FILES];
static unsigned head, tail;

static int epoll;

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

static void close_connection(int descriptor) {
    connections[descriptor].generation++;
    close(descriptor);
}

static void accept_all(int listener) {
    int descriptor;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (descriptor >= MAX_FILES) {
            close(descriptor);
            continue;
        }
        connections[descriptor].matched = 0;
        watch(descriptor);
    }
}

static void read_requests(int descriptor) {
    static const char end[] = "\r\n\r\n";
    char buffer[4096];
    ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
        close_connection(descriptor);
        return;
    }
    int matched = connections[descriptor].matched;
    for (ssize_t index = 0; index < count; index++) {
        matched = buffer[index] == end[matched] ? matched + 1 : buffer[index] == '\r';
        if (matched == 4) {
            matched = 0;
            queue[tail++ % MAX_FILES] =
                (struct due){now_ms() + DELAY_MS, descriptor, connections[descriptor].generation};
        }
    }
    connections[descriptor].matched = matched;
}

// Returns how long to wait for the next one, -1 when there is none.
static int answer_due(void) {
    while (head != tail) {
        struct due *next = &queue[head % MAX_FILES];
        int64_t wait = next->at - now_ms();
        if (wait > 0) return (int)wait;
        head++;
        if (connections[next->descriptor].generation != next->generation) continue;
        if (send(next->descriptor, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) close_connection(next->descriptor);
    }
    return -1;
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
            else read_requests(descriptor);
        }
    }
}
