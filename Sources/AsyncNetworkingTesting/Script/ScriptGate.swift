// SPDX-License-Identifier: MIT

import ANSystem
import CLinux
import Glibc

/// A gate that blocks a script until the test opens it, to determine an order without sleeping.
///
/// ```swift
/// let gate = try ScriptGate()
/// server.route("/", Script([.wait(gate), .reply(Reply())]))
/// …                       // the response has not been sent yet
/// gate.open()
/// ```
///
/// A gate remains open once it was opened. Any number of scripts can wait for it, and it can be opened on any thread.
public final class ScriptGate: Sendable {
    /// Readable once the gate is open, so that a server's thread can wait for the gate and its client at the same time.
    let descriptor: FileDescriptor
    private let isOpen = Observed(false)

    /// Creates a closed gate, which uses a file descriptor until it is released.
    ///
    /// - Throws: `SystemError` if no descriptor can be created, for example because the process or the system has too
    ///   many open files. See eventfd(2).
    public init() throws {
        let number = eventfd(0, CLINUX_EFD_FLAGS)
        guard number >= 0 else { throw SystemError.last("eventfd") }
        descriptor = FileDescriptor(takingOwnershipOf: number)
    }

    /// Opens the gate for all scripts that wait for it now or later. Opening it again has no effect.
    public func open() {
        isOpen.update { $0 = true }
        _ = eventfd_write(descriptor.number, 1)
    }

    /// Waits until the gate is open; throws `CancellationError` if the task is cancelled.
    package func wait() async throws {
        try await isOpen.wait { $0 }
    }
}
