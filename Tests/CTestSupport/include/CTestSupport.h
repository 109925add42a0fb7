// SPDX-License-Identifier: MIT
//
// Functions of glibc that its header files hide behind _GNU_SOURCE, without which Swift imports them, or that are not
// part of Swift's module Glibc.

#ifndef CTESTSUPPORT_H
#define CTESTSUPPORT_H

#include <malloc.h>
#include <spawn.h>

extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path);
extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int first);
extern int pipe2(int ends[2], int flags);

#endif
