// SPDX-License-Identifier: MIT

package import ANHTTP
import CCurl

/// How much libcurl's HTTP/2 is trusted with.
///
/// | libcurl | ``ANHTTP/HTTPVersionPolicy/automatic`` | ``ANHTTP/HTTPVersionPolicy/http2`` | ``ANHTTP/HTTPVersionPolicy/http2PriorKnowledge`` |
/// |---|---|---|---|
/// | without HTTP/2 | HTTP/1.1 | HTTP/1.1 | an error |
/// | before 8.10.1 | HTTP/1.1 | one exchange at a time on a connection | a connection for each exchange |
/// | 8.10.1 and later | HTTP/2, shared connections | HTTP/2, shared connections | shared connections |
///
/// Exchanges that share a connection of an older version lose requests, and bytes of one stream end up in another:
///
/// | defect | fixed in |
/// |---|---|
/// | with prior knowledge, the preface is sent with each request | 8.0 (cbe9d82c22) |
/// | while the socket is full, `SSL_write` is repeated with other bytes, which ends the connection; bytes of one stream overwrite another's in the buffer that both use | 8.1 (744dcf22fa, 8f50e393ab) |
/// | an easy handle that is removed while nghttp2 holds its HEADERS back, because the socket is full, is accessed after it is freed | 8.7 (with 8.5 still reproduced) |
/// | request bodies of unknown length are cut, doubled or contain a raw frame header | 8.7 (the reader of request bodies was rewritten) |
/// | the end of a request body of unknown length is not sent | 8.10.1 (35bf766280, 70d3a9b6aa) |
///
/// All of them need a second stream on the connection, or a connection that outlives an unfinished exchange.
package enum HTTP2Sharing: Sendable {
    /// libcurl was built without HTTP/2.
    case unsupported
    /// A connection carries one exchange at a time, and is closed unless the exchange was completed.
    case exclusive
    /// Exchanges share connections.
    case multiplexed

    /// Returns the sharing for a version of libcurl, as in `curl_version_info_data.version_num`.
    package init(version: UInt32, hasHTTP2: Bool) {
        self = !hasHTTP2 ? .unsupported : version < 0x08_0A_01 ? .exclusive : .multiplexed
    }

    /// The maximum size in bytes of a request's head over HTTP/2. nghttp2 sends no more than 64 KiB, to which libcurl adds
    /// fields of its own and up to 8 KiB of cookies.
    package static let maximumHeadSize = 48 << 10

    /// The value of CURLOPT_HTTP_VERSION(3) for a policy.
    ///
    /// - Parameter headSize: The size of the request's head in bytes. One that is too large for HTTP/2 is sent over
    ///   HTTP/1.1.
    /// - Throws: ``ANHTTP/TransportError/Reason/unsupported(_:)``, or
    ///   ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for a head that is too large for the only permitted version.
    package func curlNumber(
        of policy: HTTPVersionPolicy, isSecure: Bool, headSize: Int
    ) throws(TransportError) -> Int {
        let mayNegotiate = isSecure && headSize <= Self.maximumHeadSize
        return switch policy {
        // Without TLS, libcurl would reuse a connection of a request that speaks HTTP/2 by prior knowledge.
        case .automatic: mayNegotiate && self == .multiplexed ? CCURL_HTTP_VERSION_2TLS : CCURL_HTTP_VERSION_1_1
        case .http2: mayNegotiate && self != .unsupported ? CCURL_HTTP_VERSION_2TLS : CCURL_HTTP_VERSION_1_1
        case .http1: CCURL_HTTP_VERSION_1_1
        case .http2PriorKnowledge where self == .unsupported: throw TransportError(.unsupported(.http2))
        case .http2PriorKnowledge where headSize > Self.maximumHeadSize:
            throw TransportError(.invalidRequest(.option("A head of more than 48 KiB cannot be sent over HTTP/2.")))
        case .http2PriorKnowledge: CCURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
        case .http3: CCURL_HTTP_VERSION_3
        case .http3Only: CCURL_HTTP_VERSION_3ONLY
        }
    }
}
