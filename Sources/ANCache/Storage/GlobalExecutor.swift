// SPDX-License-Identifier: MIT

/// Runs a function that reads or writes files on the global executor: neither on the actor of the caller nor on its
/// preferred task executor, on which a `@concurrent` function alone would run, and which may be an event loop.
package func onGlobalExecutor<Value: Sendable>(
    _ body: @concurrent @Sendable () async throws -> Value
) async rethrows -> Value {
    // The executor is left when `body` is called, which only a `@concurrent` function requires.
    try await withTaskExecutorPreference(globalConcurrentExecutor) { try await body() }
}
