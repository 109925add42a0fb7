// SPDX-License-Identifier: MIT

package import ANSystem

/// A failure to observe the network: netlink is unavailable, as in a locked-down container, or has failed, or the
/// process lacks descriptors, memory or threads. See netlink(7).
///
/// ``ReachabilityMonitor/status(of:)`` and the iteration of ``ReachabilityMonitor/statuses(for:)`` throw it. Both may
/// be called again, and then open new sockets.
public struct ReachabilityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system call that failed, such as `socket`.
    package let call: String
    /// The `errno` of the failed system call, such as `EPERM` or `EMFILE`; the name of the call is in the
    /// ``description``. See errno(3).
    public let code: Int32

    package init(_ cause: SystemError) {
        call = cause.call
        code = cause.code
    }

    /// Returns an error for a system call with the calling thread's `errno`.
    static func last(_ call: String) -> ReachabilityError {
        ReachabilityError(SystemError.last(call))
    }

    /// A sentence with the failed call, the system's message and the `errno`, and the advice to check that AF_NETLINK
    /// sockets are allowed, which is the same for every `errno`.
    public var description: String {
        "The network cannot be observed: \(SystemError(call: call, code: code)); "
            + "check that the container or sandbox allows AF_NETLINK sockets"
    }
}
