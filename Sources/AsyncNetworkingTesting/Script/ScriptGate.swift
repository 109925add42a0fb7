// SPDX-License-Identifier: MIT

import ANSystem
import CLinux
import Glibc

/// A gate that holds a script until the test opens it: order without sleeping.
///
/// ```swift
/// let gate = try ScriptGate()
/// server.route("/", Script([.wait(gate), .reply(Reply())]))
/// …                       // the response cannot have come yet
/// gate.open()
/// ```
///
/// Once open it stays open.
public final class ScriptGate: Sendable {
    /// Readable once the gate is open, so that a server's thread can wait for it and for its client at once.
    let descriptor: FileDescriptor
    private let isOpen = Observed(false)

    /// Creates a closed gate.
    ///
    /// - Throws: `SystemError` when there are no descriptors left.
    public init() throws {
        let number = eventfd(0, CLINUX_EFD_FLAGS)
        guard number >= 0 else { throw SystemError.last("eventfd") }
        descriptor = FileDescriptor(takingOwnershipOf: number)
    }

    /// Lets all scripts pass.
    public func open() {
        isOpen.update { $0 = true }
        _ = eventfd_write(descriptor.number, 1)
    }

    /// Waits until the gate is open, or throws `CancellationError`.
    func wait() async throws {
        try await isOpen.wait { $0 }
    }
}
