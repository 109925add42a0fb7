// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

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
}

extension Request {
    /// A closure that changes the response to this request before it is stored in the session's cache, or returns `nil`
    /// to prevent that; `nil`, the default, uses ``AsyncNetworking/SessionConfiguration/willCache``. The task that
    /// reads the body calls it when it has read the body to its end, for a response that may be stored and fits into
    /// the cache; not for a 304, which only updates the stored header fields. It receives the complete body in memory.
    /// The caller receives the response unchanged. Without a cache it has no effect.
    public var willCache: (@Sendable (CacheProposal) async -> CacheProposal?)? {
        get { self[WillCache.self] }
        set { self[WillCache.self] = newValue }
    }
}

private enum WillCache: RequestAttribute {
    static var defaultValue: (@Sendable (CacheProposal) async -> CacheProposal?)? { nil }
}
