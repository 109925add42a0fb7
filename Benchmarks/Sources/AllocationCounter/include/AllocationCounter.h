// SPDX-License-Identifier: MIT

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

/// How often the process has asked for memory so far, in any thread.
long allocation_count(void);

#endif
