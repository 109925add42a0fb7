// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A response that is about to be stored in a session's cache; see ``SessionConfiguration/willCache``.
public struct CacheProposal: Sendable {
    /// The request, as it was sent.
    public let request: Request
    /// The status and header fields to store. Changes affect how long the response is used.
    public var head: ResponseHead
    /// The body to store.
    public var body: Data
}

extension Request {
    /// A closure that changes the response to this request before it is stored in the session's cache, or returns `nil`
    /// to prevent that; `nil`, the default, uses ``AsyncNetworking/SessionConfiguration/willCache``.
    public var willCache: (@Sendable (CacheProposal) async -> CacheProposal?)? {
        get { self[WillCache.self] }
        set { self[WillCache.self] = newValue }
    }
}

private enum WillCache: RequestAttribute {
    static var defaultValue: (@Sendable (CacheProposal) async -> CacheProposal?)? { nil }
}
