// SPDX-License-Identifier: MIT

/// A task that waits to be woken, exactly once.
///
/// It is the unchecked form of a continuation: one is made for each request, and the state machines that keep it hand it
/// out once only, which their tests show.
@safe
package struct Waiter: Sendable {
    private let continuation: UnsafeContinuation<Void, Never>

    /// Suspends the calling task; `register` gets the waiter and sees to it that it is woken.
    static func suspend(_ register: (Waiter) -> Void) async {
        await unsafe withUnsafeContinuation { unsafe register(Waiter(continuation: $0)) }
    }

    func wake() {
        unsafe continuation.resume()
    }
}
