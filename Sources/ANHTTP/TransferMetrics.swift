// SPDX-License-Identifier: MIT

/// What one exchange cost: times, bytes, and the connection it used.
///
/// Times run from the start of the exchange, as in curl_easy_getinfo(3); nil means that the step did not happen, as on a
/// reused connection.
public struct TransferMetrics: Hashable, Sendable {
    /// Until the exchange left the queue for a connection.
    public var queued: Duration = .zero
    /// Until the name was resolved.
    public var nameLookup: Duration?
    /// Until TCP, or the proxy's tunnel, was connected.
    public var connect: Duration?
    /// Until the TLS handshake was done.
    public var tlsHandshake: Duration?
    /// Until the request could be sent.
    public var requestStart: Duration?
    /// Until the first byte of the response.
    public var firstByte: Duration?
    /// Until the end.
    public var total: Duration = .zero

    /// Bytes of request heads sent.
    public var requestHeadBytes: Int64 = 0
    /// Bytes of the request body sent.
    public var requestBodyBytes: Int64 = 0
    /// Bytes of response heads received.
    public var responseHeadBytes: Int64 = 0
    /// Bytes of the response body received, before decompression.
    public var responseBodyBytes: Int64 = 0

    /// Whether the connection had served an exchange before.
    public var isConnectionReused = false
    /// How often the exchange was sent: 2 when a stale kept-alive connection made a second try necessary.
    public var attempts = 1
    /// The attempts before this exchange's, with what they cost; a session fills it in.
    public var retries = RetryHistory()
    /// The server's, or proxy's, address and port.
    public var remoteAddress: SocketAddress?
    /// This side's address and port.
    public var localAddress: SocketAddress?
    /// The version of HTTP that was used.
    public var httpVersion: HTTPVersion?
    /// The version of TLS, as OpenSSL names it, such as `TLSv1.3`; nil without TLS.
    public var tlsVersion: String?
    /// The cipher suite, as OpenSSL names it; nil without TLS.
    public var cipher: String?

    /// Creates metrics of an exchange that has not begun.
    public init() {}
}

/// A numeric IP address and a port.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in text form.
    public var host: String
    /// The port.
    public var port: Int

    /// Creates an address.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `host:port`, with brackets around IPv6.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
