// SPDX-License-Identifier: MIT

import AllocationCounter
import Glibc

/// The processor time and the allocations of a request.
package struct Cost: CustomStringConvertible, Sendable {
    package var microseconds: Double
    package var allocations: Double

    /// Measures `perform`, which performs the given number of requests. Allocations are counted in a separate run.
    package static func measure(
        _ requests: Int, isolation: isolated (any Actor)? = #isolation, _ perform: (Int) async throws -> Void
    ) async rethrows -> Cost {
        try await perform(requests / 10)
        let start = processorMicroseconds()
        try await perform(requests)
        let time = processorMicroseconds() - start
        let before = allocation_count()
        count_allocations(1)
        try await perform(requests / 10)
        count_allocations(0)
        return Cost(
            microseconds: time / Double(requests),
            allocations: Double(allocation_count() - before) / Double(requests / 10))
    }

    /// Returns the lower cost: disturbances only add to a measurement.
    package static func min(_ left: Cost?, _ right: Cost) -> Cost {
        left.map { $0.microseconds < right.microseconds ? $0 : right } ?? right
    }

    package static func - (left: Cost, right: Cost) -> Cost {
        Cost(microseconds: left.microseconds - right.microseconds, allocations: left.allocations - right.allocations)
    }

    package var description: String {
        "\((microseconds * 100).rounded() / 100) µs, \((allocations * 10).rounded() / 10) allocations"
    }

    private static func processorMicroseconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return [usage.ru_utime, usage.ru_stime].map { Double($0.tv_sec) * 1e6 + Double($0.tv_usec) }.reduce(0, +)
    }
}
