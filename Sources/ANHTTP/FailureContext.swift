// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// The details of a failed transfer, for logs and messages.
public struct FailureContext: Hashable, Sendable {
    /// The URL without user information and query values; empty if the transfer had not begun.
    public var url = ""
    /// The host that was contacted; the proxy if the proxy failed; `nil` if unknown.
    public var host: String?
    /// The address that was connected to, or that was tried; `nil` if no address was reached.
    public var address: SocketAddress?
    /// The libcurl error code, as in libcurl-errors(3); `nil` if the error does not come from libcurl.
    public var curlCode: Int32?
    /// The error message of libcurl; `nil` if it gave no message.
    public var message: String?
    /// The `errno` of the system; `nil` if no system call failed.
    public var errno: Int32?
    /// The time from the start of the exchange to the failure; zero if the exchange had not begun.
    public var elapsed: Duration = .zero
    /// The time limit that expired; `nil` if the failure is not a timeout.
    public var timeLimit: Duration?
    /// The number of times the exchange was sent; more than 1 if a reused connection turned out to be closed.
    public var sendCount = 1
    /// The authentication schemes offered by a proxy that refused a tunnel with status 407; empty otherwise.
    package var proxySchemes: Set<AuthenticationScheme> = []
    /// The certificates of a server that was not trusted; `nil` for other failures.
    public var serverTrust: ServerTrust?
    /// The attempts before this one, and why there were no more; set by a session, otherwise empty.
    public var retryHistory = RetryHistory()

    /// Creates empty details.
    public init() {}

    /// Creates the details of a failed request for a URL.
    package init(_ url: URL) {
        self.url = url.redactedDescription
        host = url.host()
    }
}
