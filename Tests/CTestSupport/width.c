// SPDX-License-Identifier: MIT

#include <stdlib.h>

#include "CTestSupport.h"

// Swift Testing starts all tests at once. On two cores each of 1,800 tests would then share its time limit with all
// others, and a request to a server on loopback would last as long as the whole run. The variable sets the default of
// `swift test --experimental-maximum-parallelization-width`; it is read before the first test, so it is set here, when
// the test executable is loaded.
__attribute__((constructor)) static void limit_concurrent_tests(void) {
    setenv("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", "8", 0);
}
