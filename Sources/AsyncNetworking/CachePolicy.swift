// SPDX-License-Identifier: MIT

public import ANHTTP
package import ANSerialization
import HTTPTypes

/// The use of caches by a request.
///
/// A session has no cache of its own, so a policy applies to the caches between client and server: it adds a
/// `Cache-Control` field, unless the request has one.
///
/// | policy | sends | RFC 9111 |
/// |---|---|---|
/// | ``useProtocol`` | nothing | |
/// | ``reload`` | `no-cache` | §5.2.1.4: a cache must revalidate with the server |
/// | ``returnCacheDataElseLoad`` | `max-stale` | §5.2.1.2: a cache may return a response of any age |
/// | ``returnCacheDataDontLoad`` | no request | fails with ``SessionError/notCached`` |
public enum CachePolicy: Hashable, Sendable {
    /// Caches follow the rules of HTTP.
    case useProtocol
    /// The response must come from the server or have been validated by it.
    case reload
    /// A cached response of any age is acceptable; without one the server is asked.
    case returnCacheDataElseLoad
    /// Only a cached response is acceptable; without one the request fails.
    case returnCacheDataDontLoad

    /// Adds the policy's `Cache-Control` to a request without one.
    ///
    /// - Throws: ``SessionError/notCached`` for ``returnCacheDataDontLoad``.
    func apply(to request: inout Request) throws(SessionError) {
        let directive: String
        switch self {
        case .useProtocol: return
        case .reload: directive = "no-cache"
        case .returnCacheDataElseLoad: directive = "max-stale"
        case .returnCacheDataDontLoad: throw .notCached
        }
        if !request.headers.contains(.cacheControl) { request.headers[.cacheControl] = directive }
    }
}

extension Request {
    /// The cache policy of this request; `nil`, the default, uses the session's.
    public var cachePolicy: CachePolicy? {
        get { self[CachePolicy.OfRequest.self] }
        set { self[CachePolicy.OfRequest.self] = newValue }
    }
}

extension HTTPRequestSerializer {
    /// The cache policy of the serializer's requests; `nil`, the default, uses the session's.
    package var cachePolicy: CachePolicy? {
        get { self[CachePolicy.OfRequest.self] }
        set { self[CachePolicy.OfRequest.self] = newValue }
    }
}

extension CachePolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: CachePolicy? { nil }
    }
}
