// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// The details of a failed transfer, for logs and messages; see ``TransportError/context``.
public struct FailureContext: Hashable, Sendable {
    /// The URL without user information, query values and fragment, such as `https://example.com/a?key=…`; only its
    /// scheme, as in `https:…`, if it has no host. Empty if unknown, as in most errors that occur before the transfer
    /// begins.
    public var url = ""
    /// The host of the URL, spelled as there, or the host of a ``Proxy`` that failed; `nil` if unknown, as for a proxy
    /// of the environment whose name cannot be resolved. Other failures of such a proxy have the host of the URL.
    public var host: String?
    /// The address that was connected to, or else tried last; that of a proxy if there is one, and `nil` if no address
    /// was tried, for example because the name could not be resolved.
    public var address: SocketAddress?
    /// The libcurl error code, as in libcurl-errors(3); `nil` if the error does not come from libcurl.
    public var curlCode: Int32?
    /// The error message of libcurl, or a detail such as which content coding is malformed; `nil` without a message.
    public var message: String?
    /// The `errno` of the last system call that failed, such as connect(2), which need not be the cause; `nil` if no
    /// call failed. See CURLINFO_OS_ERRNO(3).
    public var errno: Int32?
    /// The time from the start of the exchange, including its time in the queue, to the failure; zero if the exchange
    /// had not begun, or if the failure was found by the reader of the body, as when a body cannot be decoded. In the
    /// error of a call with several exchanges, such as those of retries and redirects, it is that of the last one.
    public var elapsed: Duration = .zero
    /// The time limit that expired: one of ``Timeouts``, `Request.timeout` of the whole call, the time that
    /// `RetryPolicy.deadline` left for the last attempt, or ``WebSocketOptions/pingTimeout``; `nil` if the failure is
    /// not a timeout.
    public var timeLimit: Duration?
    /// The number of times that the transport sent the request, at least 1 even if it failed before; more than 1 if a
    /// reused connection was lost before the response, or a server stated that it had not processed the request.
    ///
    /// The retries of a session are not counted; see ``retryHistory``. If the transport answers a challenge, counting
    /// starts over.
    public var sendCount = 1
    /// The authentication schemes offered by a proxy that refused a tunnel with status 407; empty otherwise.
    package var proxySchemes: Set<AuthenticationScheme> = []
    /// The certificates of a server that was not trusted; `nil` for other failures, for a proxy, and if libcurl does
    /// not use the same OpenSSL as this library.
    public var serverTrust: ServerTrust?
    /// The attempts before this one, and why there were no more; set by a session with a retry policy, otherwise empty.
    public var retryHistory = RetryHistory()

    /// Creates empty details: an empty ``url``, a ``sendCount`` of 1, a zero ``elapsed``, and nothing else.
    public init() {}

    /// Creates the details of a failed request for a URL.
    package init(_ url: URL) {
        self.url = url.redactedDescription
        host = url.host()
    }
}
