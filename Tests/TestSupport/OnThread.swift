// SPDX-License-Identifier: MIT

import ANSystem
import Glibc

/// Calls a function that blocks on a thread of its own, so that it blocks no thread of the concurrency pool.
package func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        do {
            try SystemThread(name: "blocking call") { continuation.resume(with: Result(catching: body)) }.detach()
        } catch {
            continuation.resume(throwing: error)
        }
    }
}

/// Blocks the current thread, as a computation would, but without the processor.
package func blockThread(for duration: Duration) {
    usleep(UInt32(duration / .microseconds(1)))
}
