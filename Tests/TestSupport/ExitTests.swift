// SPDX-License-Identifier: MIT

package import Testing

/// Runs exit tests one after the other.
///
/// Swift Testing blocks a thread of the concurrency pool from the start to the end of the process of an exit test. The
/// pool has one thread per core: on two cores, two exit tests would stop all other tests until one of them ends.
package struct ExitTestTrait: TestTrait, TestScoping {
    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        await Turnstile.exitTests.enter()
        do {
            try await function()
        } catch {
            await Turnstile.exitTests.leave()
            throw error
        }
        await Turnstile.exitTests.leave()
    }
}

extension Trait where Self == ExitTestTrait {
    /// Required of tests with `#expect(processExitsWith:)`. The time limit of the test includes the wait for others.
    package static var exitTest: Self { Self() }
}

/// Admits one caller at a time, in the order of arrival.
private actor Turnstile {
    static let exitTests = Turnstile()

    private var isOccupied = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isOccupied else {
            isOccupied = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty {
            isOccupied = false
        } else {
            waiting.removeFirst().resume()
        }
    }
}
