// SPDX-License-Identifier: MIT

/// The durations, sizes and connection details of one exchange.
///
/// They are in ``ResponseBody/metrics`` after the end of the body, in ``ExchangeEvent/finished(_:)``, and in
/// `Response.metrics`.
///
/// Durations are measured from the start of the exchange, including its time in the queue, and otherwise as in
/// curl_easy_getinfo(3); `nil` means that the step did not take place, for example on a reused connection. Over HTTP/2
/// and HTTP/3, the bytes of heads are counted in the form that they would have over HTTP/1.1. The handshake and the
/// messages of a WebSocket connection are not counted.
public struct TransferMetrics: Hashable, Sendable {
    /// The time until the exchange left the queue for a connection, or ended in it; about zero if it did not wait. If
    /// the request was sent again on a new connection, the time until that connection was begun.
    public var queued: Duration = .zero
    /// The time until the name of the host or proxy was resolved; `nil` on a reused connection.
    public var nameLookup: Duration?
    /// The time until the TCP connection to the server or proxy was established, or over QUIC until the server first
    /// answered; `nil` on a reused connection and, depending on the version of libcurl, if a tunnel or the TLS
    /// handshake failed after it.
    public var connect: Duration?
    /// The time until the TLS handshake with the server was complete; `nil` without TLS, on a reused connection, and if
    /// the handshake failed.
    public var tlsHandshake: Duration?
    /// The time until the request was about to be sent; `nil` if the exchange ended before.
    public var requestStart: Duration?
    /// The time until the first byte of the response was received; `nil` if the exchange ended before.
    public var firstByte: Duration?
    /// The time until the end of the exchange; zero for a response from a cache without an exchange.
    public var total: Duration = .zero

    /// The number of bytes of request heads sent, including those of tunnels and of answers to challenges, except that
    /// the exchange in which a server challenges by Digest is not counted. If the request was sent again on another
    /// connection, the earlier heads may be missing.
    public var requestHeadBytes: Int64 = 0
    /// The number of bytes of the request body passed to libcurl for sending, after any compression; if it was sent
    /// again, those of the last time.
    public var requestBodyBytes: Int64 = 0
    /// The number of bytes of response heads received, including those of interim responses, tunnels and challenges.
    public var responseHeadBytes: Int64 = 0
    /// The number of bytes of the response body received, before decompression and without chunked coding.
    public var responseBodyBytes: Int64 = 0

    /// The source of the response; set by a session with a response cache, otherwise ``ResponseSource/network``.
    public var source = ResponseSource.network

    /// Whether the connection was made by another exchange; `false` if no connection became ready for the request.
    public var isConnectionReused = false
    /// The number of times the exchange was sent, at least 1 even if it ended before; more than 1 if a reused
    /// connection turned out to be closed, a server stated that it had not processed the request, or an alternative
    /// service failed after the request was sent to it. If the transport answers a challenge, counting starts over.
    public var sendCount = 1
    /// The attempts before this exchange, with their metrics; set by a session in the metrics of a `Response`, and
    /// empty in those of events and bodies.
    public var retryHistory = RetryHistory()
    /// The address and port of the server, or of the proxy; `nil` if no connection became ready for the request, for
    /// example because the TLS handshake failed. ``FailureContext/address`` then contains the address that was tried.
    public var remoteAddress: SocketAddress?
    /// The local address and port of the connection; `nil` if no connection became ready for the request, for example
    /// because the TLS handshake failed.
    public var localAddress: SocketAddress?
    /// The HTTP version that was used; `nil` if no response was received from a server, and for a WebSocket connection.
    public var httpVersion: HTTPVersion?
    /// The version of TLS to the server as named by OpenSSL, such as `TLSv1.3`; `nil` without TLS, if no response was
    /// received, if libcurl uses another TLS library, or over HTTP/3 if libcurl uses OpenSSL's own QUIC.
    public var tlsVersion: String?
    /// The cipher suite as named by OpenSSL, such as `TLS_AES_256_GCM_SHA384`; `nil` without TLS, if no response was
    /// received, if libcurl uses another TLS library, or over HTTP/3 if libcurl uses OpenSSL's own QUIC.
    public var cipher: String?

    /// The numbers of segments of a download, in the order of their changes; set in the metrics of the `Response` of a
    /// segmented download, otherwise empty. Then ``responseBodyBytes`` counts those of all segments, and the other
    /// metrics are those of the last one that ended with its response.
    public var segmentHistory: [SegmentChange] = []

    /// Whether a time limit has ended the exchange.
    package var hasTimedOut = false

    /// Creates metrics for an exchange that has not begun: all durations are zero or `nil`, and all numbers of bytes
    /// are 0.
    public init() {}
}

/// A change of the number of segments of a download, in ``TransferMetrics/segmentHistory``.
public struct SegmentChange: Hashable, Sendable {
    /// The time since the first segment began.
    public var time: Duration
    /// The number of segments that the download aims for from then on.
    public var count: Int
    /// The speed of all segments together that was measured before; `nil` for the first number.
    public var bytesPerSecond: Double?

    package init(time: Duration, count: Int, bytesPerSecond: Double?) {
        (self.time, self.count, self.bytesPerSecond) = (time, count, bytesPerSecond)
    }
}

/// The source of a response.
public enum ResponseSource: String, Hashable, Sendable {
    /// The server, by an exchange over the network.
    case network
    /// A response cache, without a request to the server; also for the 504 that answers a request for stored responses
    /// only (RFC 9111 §5.2.1.7).
    case cache
    /// A response cache, after the server confirmed with a 304 that the stored response is current. The other metrics
    /// are those of that exchange.
    case validated
    /// A response cache, although the stored response is stale, or was to be validated and the server failed: the
    /// request or the server permits it.
    case stale
}

/// An IP address and a port, of either end of a connection.
///
/// Over a Unix-domain socket, the address of the server is the path of the socket with the port of the URL, and the
/// local address is empty.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The IPv4 or IPv6 address in text form, without brackets; for a Unix-domain socket its path, of which libcurl
    /// reports at most 45 bytes, or an empty string for the local end.
    public var host: String
    /// The TCP or UDP port number; for a Unix-domain socket that of the URL, or 0 for the local end.
    public var port: Int

    /// Creates a socket address.
    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// The address and the port as `host:port`, with brackets around an IPv6 address.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// A snapshot of the progress of a transfer in one direction, upload or download.
///
/// It is reported by ``ExchangeEvent/uploadProgress(_:)`` and ``ExchangeEvent/downloadProgress(_:)``, and by the
/// progress streams of a session's tasks.
public struct TransferProgress: Hashable, Sendable {
    /// The number of body bytes transferred so far: of a response before decompression, of a request after compression.
    ///
    /// Bytes of a request count when they are passed to libcurl for sending, and again from 0 if the body must be sent
    /// again. For a resumed download, the bytes of earlier exchanges are included.
    public var completedBytes: Int64
    /// The total number of body bytes; `nil` if it is not known for certain, as with chunked coding.
    public var totalBytes: Int64?
    /// The current speed, an average weighted towards recent measurements; `nil` if it was not measured, as in the
    /// events of a single exchange.
    public var bytesPerSecond: Double?

    /// Creates a snapshot whose ``bytesPerSecond`` is `nil`.
    ///
    /// - Parameters:
    ///   - completedBytes: The number of body bytes transferred so far.
    ///   - totalBytes: The total number of body bytes; `nil` if it is unknown.
    public init(completedBytes: Int64, totalBytes: Int64?) {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
    }

    /// The completed fraction, from 0 to 1; `nil` if the total is unknown, 1 if it is 0.
    public var fraction: Double? {
        guard let totalBytes else { return nil }
        return totalBytes <= 0 ? 1 : max(0, min(1, Double(completedBytes) / Double(totalBytes)))
    }

    /// The estimated time to the end at the current speed, at least zero; `nil` if the total is unknown, or the speed
    /// is unknown or below 1 byte per second, or the estimate is 100 hours or more.
    public var timeLeft: Duration? {
        guard let totalBytes, let bytesPerSecond, bytesPerSecond >= 1 else { return nil }
        let seconds = (Double(totalBytes) - Double(completedBytes)) / bytesPerSecond
        return seconds < 360_000 ? .seconds(max(0, seconds)) : nil
    }
}

/// A large value behind a reference, which makes its containers small and cheap to copy.
package final class Shared<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}
