// SPDX-License-Identifier: MIT

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

/// Has allocations counted from now on, or no longer: the count costs time where several threads allocate.
void count_allocations(int is_on);

/// How often the process has asked for memory while that was counted, in any thread.
long allocation_count(void);

#endif
