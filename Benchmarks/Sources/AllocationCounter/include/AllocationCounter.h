// SPDX-License-Identifier: MIT

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

/// Starts or stops counting allocations. Counting takes time if several threads allocate concurrently.
void count_allocations(int is_on);

/// Returns the number of allocations in all threads while counting was on.
long allocation_count(void);

#endif
