// SPDX-License-Identifier: MIT

package import ANHTTP
package import HTTPTypes

/// A stored response without its body, and what is needed to choose it for a later request.
///
/// Only complete responses to GET are stored.
package struct StoredResponse: Sendable, Hashable {
    /// The normalized target URI; see ``CacheKey``.
    package let target: String
    /// The status code and reason phrase.
    package let status: HTTPResponse.Status
    /// The HTTP version.
    package let version: HTTPVersion
    /// The header fields, without those that are limited to one connection.
    package private(set) var headers: HTTPFields
    /// The trailer fields, which are kept apart from the header fields (RFC 9111 §3.1).
    package private(set) var trailers: HTTPFields
    /// The number of bytes of the body.
    package private(set) var bodyLength: Int64
    /// The time of the request that resulted in, or last validated, the response.
    package private(set) var requestTime: CacheTime
    /// The time at which the response was received or last validated.
    package private(set) var responseTime: CacheTime
    /// The values of the request's fields that the response depends on.
    package private(set) var variant: Variant
    /// The checksum of the credentials that the response depends on; see ``CacheOwner``.
    package private(set) var owner: UInt64
    /// Whether the body was stored without its content coding.
    package let isDecoded: Bool
    /// Whether the program has replaced the body of the server by another one, which the fields may not describe.
    package let isReplaced: Bool
    /// Whether the end of the body was marked, so that it cannot have been the loss of the connection.
    package let isDelimited: Bool
    /// Whether the response must be validated before it is used, because it may have been changed by another request.
    package private(set) var isInvalidated: Bool

    /// The meaning of the header fields, determined once.
    package private(set) var rules: ResponseRules

    /// Creates a stored response from its parts.
    package init(
        target: String, status: HTTPResponse.Status, version: HTTPVersion, headers: HTTPFields, trailers: HTTPFields,
        bodyLength: Int64, requestTime: CacheTime, responseTime: CacheTime, variant: Variant, owner: UInt64,
        isDecoded: Bool, isReplaced: Bool = false, isDelimited: Bool = false, isInvalidated: Bool = false
    ) {
        self.target = target
        self.status = status
        self.version = version
        self.headers = headers
        self.trailers = trailers
        self.bodyLength = bodyLength
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.variant = variant
        self.owner = owner
        self.isDecoded = isDecoded
        self.isReplaced = isReplaced
        self.isDelimited = isDelimited
        self.isInvalidated = isInvalidated
        rules = ResponseRules(status: status, headers, requestTime: requestTime, responseTime: responseTime)
    }

    /// Creates the stored form of a received response, which must be storable; see ``Storability``.
    package init(
        _ head: ResponseHead, trailers: HTTPFields = [:], bodyLength: Int64 = 0, to request: CacheRequest,
        requestTime: CacheTime, responseTime: CacheTime, owner: UInt64, isReplaced: Bool = false
    ) {
        let headers = Self.storable(head.headers, received: responseTime)
        self.init(
            target: request.target, status: head.status, version: head.version, headers: headers, trailers: trailers,
            bodyLength: bodyLength, requestTime: requestTime, responseTime: responseTime,
            variant: Variant(headers, of: request), owner: owner,
            isDecoded: request.decodesContent && !headers.contentCodings.isEmpty, isReplaced: isReplaced,
            // A connection of HTTP/1 may delimit the body by its end (RFC 9112 §6.3).
            isDelimited: head.version == .http2 || head.version == .http3 || head.status == .noContent
                || head.headers.contains(.contentLength)
                || HeaderScanner.members(of: head.headers[values: .transferEncoding]).last?.lowercased() == "chunked")
    }

    /// Whether the representation does not change while it is fresh: `immutable` (RFC 8246 §2), which is ignored where
    /// an attacker or a lost connection may have changed the response, that would then stay (§3).
    var isImmutable: Bool { rules.isImmutable && isDelimited && target.hasPrefix("https:") }

    /// Whether the body is in a content coding, or was before it was decoded.
    package var isEncoded: Bool { !headers.contentCodings.isEmpty }

    // MARK: Updates

    /// Returns the response with what is known at the end of its body.
    package func ended(_ trailers: HTTPFields, bodyLength: Int64) -> StoredResponse {
        var copy = self
        copy.trailers = trailers
        copy.bodyLength = bodyLength
        return copy
    }

    /// Updates the header fields from a later response with the same representation: a 304 (RFC 9111 §4.3.4) or a
    /// response to HEAD (§4.3.5).
    ///
    /// The fields are replaced by name, except those that describe the stored bytes (§3.2). If there would be more than
    /// 4,096, the other fields of the stored response are removed. The response then counts as received at the time of
    /// the later one.
    package mutating func update(
        from later: ResponseHead, to request: CacheRequest, requestTime: CacheTime, responseTime: CacheTime
    ) {
        let provided = Self.storable(later.headers, received: responseTime)
        var updated = headers
        // The age refers to the previous response.
        updated[.age] = nil
        if updated.count + provided.count > HTTPFields.maximumCount {
            updated.removeAll { !Self.describesBody.contains($0.name) }
        }
        let names = Set(provided.map(\.name)).subtracting(Self.describesBody)
        updated.removeAll { names.contains($0.name) }
        for field in provided where names.contains(field.name) { updated.append(field) }
        // Each of the responses may have listed fields of the other one.
        headers = Self.storable(updated, received: responseTime)
        // A 304 to a request for another variant confirms the bytes, but does not make them that variant from then on.
        let named = Variant(headers, of: request)
        variant = variant.mayMatch(request) ? named : variant.adding(named)
        self.requestTime = requestTime
        self.responseTime = responseTime
        isInvalidated = false
        rules = ResponseRules(status: status, headers, requestTime: requestTime, responseTime: responseTime)
    }

    /// Whether another response has the same strong tag.
    package func hasSameTag(as other: StoredResponse) -> Bool {
        guard let own = rules.entityTag, let tag = other.rules.entityTag else { return false }
        return own.matchesStrongly(tag)
    }

    /// Returns the response for the credentials with a checksum.
    package func owned(by owner: UInt64) -> StoredResponse {
        var copy = self
        copy.owner = owner
        return copy
    }

    /// Returns the response in need of validation before its next use (RFC 9111 §4.4).
    package func invalidated() -> StoredResponse {
        var copy = self
        copy.isInvalidated = true
        return copy
    }

    /// The fields that describe the stored bytes; a later response does not change them (RFC 9111 §3.2). A 304 and a
    /// response to HEAD may have the digest of their own content, which is empty (RFC 9530 appendix B.2).
    private static let describesBody: Set<HTTPField.Name> = Set(
        [.contentLength, .contentEncoding, .contentRange, .contentDigest]
            + ["Repr-Digest", "Digest", "Content-MD5"].compactMap { HTTPField.Name($0) })

    // MARK: Fields

    /// Returns the fields to store: all except those limited to one connection or proxy, and those listed by `no-cache`
    /// (RFC 9111 §3.1). A missing `Date` becomes the time of receipt (RFC 9110 §6.6.1).
    private static func storable(_ fields: HTTPFields, received: CacheTime) -> HTTPFields {
        var excluded = CacheDirectives(fields[values: .cacheControl]).fieldNames("no-cache") ?? []
        excluded.formUnion(HeaderScanner.members(of: fields[values: .connection]).map { $0.lowercased() })
        var stored = HTTPFields()
        for field in fields {
            let isStored = !connectionFields.contains(field.name) && !excluded.contains(field.name.canonicalName)
            if isStored { stored.append(field) }
        }
        if !stored.contains(.date) { stored[.date] = received.httpDate }
        return stored
    }

    /// The fields that apply to one connection (RFC 9110 §7.6.1) or to a proxy (RFC 9111 §3.1).
    private static let connectionFields: Set<HTTPField.Name> = [
        .connection, .proxyConnection, .keepAlive, .te, .transferEncoding, .upgrade, .proxyAuthenticate,
        .proxyAuthenticationInfo, .proxyAuthorization,
    ]
}
