// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

extension SessionManager {
    /// Waits until the process receives a signal, and then shuts the manager down as ``shutdown(draining:)`` does.
    ///
    /// ```swift
    /// let ending = Task { try await api.shutdownOnSignal(draining: .seconds(20)) }
    /// ```
    ///
    /// It can be called from any actor and from top-level code, and for several managers. While it waits, the signal
    /// does not end the process; from the signal on, its earlier effect is restored, so that a second one ends a process
    /// that takes too long. Programs that install a handler of their own for the same signal meanwhile replace this one.
    ///
    /// - Parameters:
    ///   - signals: The numbers of the signals; SIGINT (2) and SIGTERM (15) by default.
    ///   - limit: The time after which requests that are still running are cancelled; `nil`, the default, waits without
    ///     a limit. Choose one below that of the service manager, such as `TimeoutStopSec` of systemd.
    /// - Returns: The number of the signal.
    /// - Throws: `CancellationError` if the calling task is cancelled before a signal, and
    ///   ``ANHTTP/TransportError/Reason/invalidRequest(_:)``, in a ``SessionError``, for a signal that cannot be caught,
    ///   such as SIGKILL. The manager is then not shut down.
    @discardableResult
    public nonisolated func shutdownOnSignal(
        _ signals: Set<Int32> = [2, 15], draining limit: Duration? = nil
    ) async throws -> Int32 {
        do {
            let signal = try await SignalWatch.shared.first(of: signals)
            await shutdown(draining: limit)
            return signal
        } catch let error as SystemError {
            throw SessionError.transport(
                TransportError(.invalidRequest(.option("a signal cannot be caught: \(error)"))))
        }
    }
}
