// SPDX-License-Identifier: MIT
//
// The Linux interfaces that the Glibc module leaves out.

#ifndef CLINUX_SHIM_H
#define CLINUX_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

// epoll_event is packed on x86_64, and its payload is a union: Swift reads and writes it through these.
static inline struct epoll_event clinux_epoll_event(uint32_t events, int32_t descriptor) {
    struct epoll_event event = {.events = events, .data = {.fd = descriptor}};
    return event;
}

static inline int32_t clinux_epoll_descriptor(const struct epoll_event *event) {
    return event->data.fd;
}

static inline uint32_t clinux_epoll_events(const struct epoll_event *event) {
    return event->events;
}

// The EPOLL* constants are enumerators of an anonymous type, which Swift imports with a type of their own.
static const uint32_t CLINUX_EPOLLIN = EPOLLIN;
static const uint32_t CLINUX_EPOLLOUT = EPOLLOUT;
static const uint32_t CLINUX_EPOLLERR = EPOLLERR;
static const uint32_t CLINUX_EPOLLHUP = EPOLLHUP;
static const uint32_t CLINUX_EPOLLRDHUP = EPOLLRDHUP;
static const uint32_t CLINUX_EPOLLET = EPOLLET;
static const int32_t CLINUX_EPOLL_CLOEXEC = EPOLL_CLOEXEC;
static const int32_t CLINUX_EFD_FLAGS = EFD_CLOEXEC | EFD_NONBLOCK;

// Glibc hides pthread_setname_np behind _GNU_SOURCE, and prctl is variadic.
static inline void clinux_set_thread_name(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

// Glibc hides accept4 behind _GNU_SOURCE.
static inline int clinux_accept(int socket) {
    return (int)syscall(SYS_accept4, socket, 0, 0, SOCK_CLOEXEC);
}

// Glibc hides renameat2 and its flags behind _GNU_SOURCE; 1 is RENAME_NOREPLACE.
static inline int clinux_rename_exclusively(const char *from, const char *to) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1);
}

// Glibc hides the locks of open file descriptions behind _GNU_SOURCE, and fcntl is variadic; 36 is F_OFD_GETLK, 37 is
// F_OFD_SETLK.
static inline int clinux_set_write_lock(int descriptor, int is_locked) {
    struct flock lock = {.l_type = is_locked ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, 37, &lock);
}

static inline int clinux_is_write_locked(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(descriptor, 36, &lock) == 0 && lock.l_type != F_UNLCK;
}

// The handler of signals that a task waits for. A handler may call sigaction(2) and write(2), and nothing of Swift
// (signal-safety(7)); the members of sigaction's union are macros.
static volatile int clinux_signal_pipe = -1;

// The bit beside the number of a signal for which there is another handler, which may have called this one.
static const unsigned char CLINUX_OTHER_HANDLER = 0x80;

static inline bool clinux_is_noted(const struct sigaction *action);

static void clinux_note_signal(int number) {
    int error = errno;
    struct sigaction current;
    bool is_current = sigaction(number, NULL, &current) == 0 && clinux_is_noted(&current);
    unsigned char byte = (unsigned char)number | (is_current ? 0 : CLINUX_OTHER_HANDLER);
    ssize_t count = write(clinux_signal_pipe, &byte, 1);
    (void)count;
    errno = error;
}

static inline bool clinux_is_noted(const struct sigaction *action) {
    return action->sa_handler == clinux_note_signal;
}

static inline int clinux_catch_signal(int number, int pipe, struct sigaction *previous) {
    struct sigaction action = {.sa_flags = SA_RESTART};
    action.sa_handler = clinux_note_signal;
    sigemptyset(&action.sa_mask);
    clinux_signal_pipe = pipe;
    return sigaction(number, &action, previous);
}

// The address of the handler of an action; 0 without one.
static inline uintptr_t clinux_handler(const struct sigaction *action) {
    return action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN ? 0 : (uintptr_t)action->sa_handler;
}

// Restores the earlier action, and returns true, unless the program has replaced the handler meanwhile.
static inline bool clinux_release_signal(int number, const struct sigaction *earlier) {
    struct sigaction current;
    if (sigaction(number, NULL, &current) != 0 || !clinux_is_noted(&current)) return false;
    return sigaction(number, earlier, NULL) == 0;
}

// Glibc hides pipe2 behind _GNU_SOURCE. A full pipe must not block the handler, which writes to it.
static inline int clinux_make_signal_pipe(int ends[2]) {
    if (syscall(SYS_pipe2, ends, O_CLOEXEC) != 0) return -1;
    return fcntl(ends[1], F_SETFL, O_NONBLOCK);
}

#endif
