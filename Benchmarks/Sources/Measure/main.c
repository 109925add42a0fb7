// SPDX-License-Identifier: MIT

// Runs a command and prints, after the command's own output, its time and memory:
//
//     Measure SECONDS COMMAND [ARGUMENT…]
//
// It is a separate process because the kernel includes the parent's memory in a child's peak until the child calls exec
// (getrusage(2), ru_maxrss). This parent is so small that the effect is negligible.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t child;

static void kill_child(int number) {
    (void)number;
    kill(-child, SIGKILL);
}

static double seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void allow_many_files(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: Measure SECONDS COMMAND [ARGUMENT…]\n");
        return 2;
    }
    allow_many_files();
    double start = now();
    child = fork();
    if (child == 0) {
        setpgid(0, 0);
        execvp(arguments[2], arguments + 2);
        perror(arguments[2]);
        _exit(127);
    }
    setpgid(child, child);
    signal(SIGALRM, kill_child);
    signal(SIGTERM, kill_child);
    signal(SIGINT, kill_child);
    alarm((unsigned)atoi(arguments[1]));

    int status;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) {
        perror("wait4");
        return 1;
    }
    // Processes that the command has left behind would keep the output open.
    kill(-child, SIGKILL);
    printf("{\"wall_s\": %.6f, \"cpu_s\": %.6f, \"peak_rss_kb\": %ld, \"exit_code\": %d}\n", now() - start,
        seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss,
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
