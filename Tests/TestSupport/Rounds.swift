// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The number of rounds of a test that repeats what random numbers or moments decide: few of them before each commit, all
/// of them where the environment has `AN_THOROUGH`, as in CI.
package func rounds(_ all: Int, few: Int) -> Int {
    isThorough ? all : few
}

private let isThorough = ProcessInfo.processInfo.environment["AN_THOROUGH"] != nil
