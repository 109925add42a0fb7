// SPDX-License-Identifier: MIT

/// A suspended task, to be resumed exactly once.
///
/// It wraps an unchecked continuation for performance: one is created for each request, and the state machines that
/// store it return it only once, which their tests verify.
@safe
package struct Waiter: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>

    /// Suspends the calling task; `register` receives the waiter and must ensure that it is resumed.
    static func suspend(_ register: (Waiter) -> Void) async {
        await unsafe withUnsafeContinuation { unsafe register(Waiter(continuation: $0)) }
    }

    func wake() {
        unsafe continuation.resume()
    }
}
