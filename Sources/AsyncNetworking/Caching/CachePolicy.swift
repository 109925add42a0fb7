// SPDX-License-Identifier: MIT

import ANCache
public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// The use of caches by a request: of the session's ``ANCache/ResponseCache``, if it has one, and of those between
/// client and server.
///
/// | policy | the session's cache | sends, unless the request has a `Cache-Control` |
/// |---|---|---|
/// | ``protocolPolicy`` | is used as HTTP permits (RFC 9111) | nothing |
/// | ``reload`` | is not used; the response is stored | `no-cache` |
/// | ``revalidate`` | is used after validation; without validation only if it is fresh and `immutable` (RFC 8246), from an https URL and of a marked length, or if the server fails and `stale-if-error` permits it (RFC 5861 §4) | `max-age=0` |
/// | ``returnCacheElseLoad`` | is used regardless of the response's age | `max-stale` |
/// | ``returnCacheDontLoad`` | is used regardless of the response's age | no request: fails with ``SessionError/notCached`` |
///
/// A policy takes effect as ``SessionConfiguration/cachePolicy`` or, for one request, as `Request.cachePolicy`. No
/// policy uses a stored response with `no-cache`, or a stale one with `must-revalidate`, without validation; nor one
/// that the request's own `Cache-Control` excludes, for example by `max-age`, unless the server fails and
/// `stale-if-error` permits it (RFC 5861 §4). The policy's field is also sent if the session has no cache, and a
/// `Cache-Control` of ``SessionConfiguration/headers`` counts as one of the request.
public enum CachePolicy: Hashable, Sendable {
    /// Caches follow the rules of HTTP (RFC 9111); the default of a session. No `Cache-Control` is added to the
    /// request.
    case protocolPolicy
    /// The response must come from the server, and is stored in place of an earlier one if that is permitted (RFC 9111
    /// §3). `Cache-Control: no-cache` is sent, unless the request has a `Cache-Control`.
    case reload
    /// A stored response is used only after validation by the server, except a fresh and `immutable` one (RFC 8246), and
    /// one that `stale-if-error` permits if the server fails (RFC 5861 §4); without a stored response, the server is
    /// asked. `immutable` is ignored in responses to an http URL, and in those whose body ended with the connection.
    /// `Cache-Control: max-age=0` is sent, unless the request has a `Cache-Control`.
    case revalidate
    /// A stored response of any age is acceptable, unless it requires validation or the request's own `Cache-Control`
    /// excludes it; without one the server is asked. `Cache-Control: max-stale` is sent, unless the request has a
    /// `Cache-Control`.
    case returnCacheElseLoad
    /// Only a stored response, of any age, is acceptable, unless it requires validation or the request's own
    /// `Cache-Control` excludes it. Without one, or if the session has no cache, the request fails with
    /// ``SessionError/notCached``. Nothing is sent.
    case returnCacheDontLoad

    /// Adds the policy's `Cache-Control` to a request without one.
    ///
    /// - Throws: ``SessionError/notCached`` for ``returnCacheDontLoad``.
    func apply(to request: inout Request) throws(SessionError) {
        let directive: String
        switch self {
        case .protocolPolicy: return
        case .reload: directive = "no-cache"
        case .revalidate: directive = "max-age=0"
        case .returnCacheElseLoad: directive = "max-stale"
        case .returnCacheDontLoad: throw .notCached
        }
        if !request.headers.contains(.cacheControl) { request.headers[.cacheControl] = directive }
    }

    /// The policy for the rules of the cache.
    var mode: CacheRequest.Mode {
        switch self {
        case .protocolPolicy: .standard
        case .reload: .reload
        case .revalidate: .revalidate
        case .returnCacheElseLoad: .acceptStale
        case .returnCacheDontLoad: .onlyStored
        }
    }
}

extension Request {
    /// The use of the session's cache, and of caches between client and server, by this request; `nil`, the default,
    /// uses ``AsyncNetworking/SessionConfiguration/cachePolicy``. A `Cache-Control` field of the request is not changed
    /// by a policy.
    public var cachePolicy: CachePolicy? {
        get { self[CachePolicy.OfRequest.self] }
        set { self[CachePolicy.OfRequest.self] = newValue }
    }

    /// Whether the request has options, policies or other attributes of its own, apart from the cache policy.
    package var hasOwnPolicies: Bool {
        options != nil || attributes.hasAttributes(besides: CachePolicy.OfRequest.self)
    }
}

extension CachePolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: CachePolicy? { nil }
    }
}

/// A response that is about to be stored in a session's cache: the argument and the result of
/// ``SessionConfiguration/willCache``.
public struct CacheProposal: Sendable {
    /// The request to which this is the response, after redirects, with the header fields of the session and
    /// credentials that it added, but without changes by ``SessionConfiguration/attemptInterceptors``.
    public let request: Request
    /// The status and header fields to store, with the URL after redirects.
    ///
    /// Later requests that are answered from the cache receive the changed ones; the caller of this request receives
    /// the original ones. The changed fields determine how long the response is used; if they do not permit storing it
    /// (RFC 9111 §3), it is not stored.
    public var head: ResponseHead
    /// The complete body to store, decompressed unless ``ANHTTP/TransferOptions/decodesContent`` is `false`; possibly
    /// empty. If it is changed, an existing `Content-Length` in ``head`` is updated. The caller receives the original
    /// body.
    public var body: Data
    /// Whether the stored response is kept, and this one is not stored.
    package var keepsStored = false
}

extension Request {
    /// A closure that changes the response to this request before it is stored in the session's cache, or returns `nil`
    /// to prevent that; `nil`, the default, uses ``AsyncNetworking/SessionConfiguration/willCache``. The task that
    /// reads the body calls it when it has read the body to its end, for a response that may be stored, also one that
    /// lacks a lifetime, and fits into the cache; not for a 304, which only updates the stored header fields. It receives
    /// the complete body in memory, also of responses that would otherwise be streamed to the disk.
    /// The caller receives the response unchanged. Without a cache it has no effect.
    public var willCache: (@Sendable (CacheProposal) async -> CacheProposal?)? {
        get { self[WillCache.self] }
        set { self[WillCache.self] = newValue }
    }
}

private enum WillCache: RequestAttribute {
    static var defaultValue: (@Sendable (CacheProposal) async -> CacheProposal?)? { nil }
}
