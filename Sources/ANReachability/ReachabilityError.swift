// SPDX-License-Identifier: MIT

package import ANSystem

/// The system does not tell about its network: there is no netlink, as in a locked-down container, or it failed.
public struct ReachabilityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system call that failed, such as `socket`.
    public let call: String
    /// Its `errno`, as in errno(3).
    public let code: Int32

    package init(_ cause: SystemError) {
        call = cause.call
        code = cause.code
    }

    /// The failure of a system call, from the calling thread's `errno`.
    static func last(_ call: String) -> ReachabilityError {
        ReachabilityError(SystemError.last(call))
    }

    /// What failed, and what to check.
    public var description: String {
        "The system does not tell about its network: \(SystemError(call: call, code: code)); "
            + "check that the container or sandbox allows sockets of AF_NETLINK"
    }
}
