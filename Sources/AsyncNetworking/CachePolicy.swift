// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
import HTTPTypes

/// What a request wants of caches, those on the way included.
///
/// Sessions keep no cache of their own, so today a wish is one to the caches on the way: a field `Cache-Control` that is
/// added where the request has none.
///
/// | policy | sends | RFC 9111 |
/// |---|---|---|
/// | ``useProtocol`` | nothing | |
/// | ``reload`` | `no-cache` | §5.2.1.4: a cache must ask the server |
/// | ``returnCacheDataElseLoad`` | `max-stale` | §5.2.1.2: a cache may answer however old its response is |
/// | ``returnCacheDataDontLoad`` | no request | fails with ``SessionError/notCached`` |
public enum CachePolicy: Hashable, Sendable {
    /// What HTTP says.
    case useProtocol
    /// A response that comes from the server, or that the server has confirmed.
    case reload
    /// A response from a cache, however old; from the server where there is none.
    case returnCacheDataElseLoad
    /// A response from a cache, however old, and otherwise none.
    case returnCacheDataDontLoad

    /// Adds what the policy sends.
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
    /// What this request wants of caches; nil, the default, means as the session says.
    public var cachePolicy: CachePolicy? {
        get { self[CachePolicy.OfRequest.self] }
        set { self[CachePolicy.OfRequest.self] = newValue }
    }
}

extension HTTPRequestSerializer {
    /// What the serializer's requests want of caches; nil, the default, means as the session says.
    public var cachePolicy: CachePolicy? {
        get { self[CachePolicy.OfRequest.self] }
        set { self[CachePolicy.OfRequest.self] = newValue }
    }
}

extension CachePolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: CachePolicy? { nil }
    }
}
