// SPDX-License-Identifier: MIT

import ANHTTP
package import HTTPTypes

/// A request as the rules of the cache see it.
package struct CacheRequest: Sendable {
    /// The normalized target URI; see ``CacheKey``.
    package let target: String
    /// The method.
    package let method: HTTPRequest.Method
    /// The header fields.
    package let headers: HTTPFields
    /// The cache directives.
    package private(set) var directives: RequestDirectives
    /// The use of stored responses that the program asks for.
    package let mode: Mode
    /// Whether the request has a body, so that its response does not depend on the target alone.
    package let hasBody: Bool
    /// Whether the transport decodes content codings. If the request names none, it asks for those it knows, or for
    /// `identity` if the request has a range.
    package let decodesContent: Bool
    /// Whether the transport may add cookies to those of the request.
    package var mayAddCookies: Bool
    /// How the header fields may change after the look-up.
    package let laterChange: FieldChange
    /// The credentials whose responses the request may use.
    package let owner: CacheOwner
    /// The salt of the cache.
    private let salt: CacheSalt

    /// A use of stored responses, besides what the request's fields say.
    package enum Mode: Hashable, Sendable {
        /// A stored response is used as HTTP permits.
        case standard
        /// No stored response is used.
        case reload
        /// A stored response is validated, unless it is fresh and immutable.
        case revalidate
        /// A stored response of any age is used.
        case acceptStale
        /// A stored response of any age is used, and no request is sent.
        case onlyStored
    }

    /// Creates a request from its parts.
    package init(
        target: String, method: HTTPRequest.Method = .get, headers: HTTPFields = [:], mode: Mode = .standard,
        hasBody: Bool = false, decodesContent: Bool = true, mayAddCookies: Bool = false,
        laterChange: FieldChange = .none,
        owner: CacheOwner = .none, salt: CacheSalt = .none
    ) {
        self.target = target
        self.method = method
        self.headers = headers
        self.mode = mode
        self.hasBody = hasBody
        self.decodesContent = decodesContent
        self.mayAddCookies = mayAddCookies
        self.laterChange = laterChange
        self.owner = owner
        self.salt = salt
        directives = headers.isEmpty ? RequestDirectives() : RequestDirectives(headers)
        switch mode {
        case .standard: break
        case .reload, .revalidate: directives.onlyIfCached = false
        case .acceptStale: directives.maxStale = .max
        case .onlyStored:
            directives.maxStale = .max
            directives.onlyIfCached = true
        }
    }

    /// Whether a stored response may be used: for GET and HEAD without a body and without the preconditions that only
    /// an origin server evaluates (RFC 9111 §4.3.2).
    var mayUseStored: Bool {
        (method == .get || method == .head) && !hasBody && mode != .reload
            && !headers.contains(.ifMatch) && !headers.contains(.ifUnmodifiedSince)
    }

    /// Whether the response may be stored.
    var isStorable: Bool { method == .get && !hasBody && !directives.noStore }

    /// Whether the request has preconditions of its own that a cache evaluates.
    var isConditional: Bool { headers.contains(.ifNoneMatch) || headers.contains(.ifModifiedSince) }

    /// Whether the response to another request may be waited for: it is likely to be stored, and to answer this one.
    package var mayShareTransfer: Bool {
        mayUseStored && isStorable && !isConditional && !headers.contains(.range) && !directives.noCache
            && mode != .revalidate
    }

    /// Whether the method is defined as safe: it does not change the resource (RFC 9110 §9.2.1 and the registry of
    /// methods).
    package var isSafe: Bool {
        switch method.rawValue {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY": true
        default: false
        }
    }

    /// Returns the value of a field, named in lower case, for comparison with that of another request.
    func value(of name: String) -> Variant.Value {
        var values = headers.filter { $0.name.canonicalName == name }.map(\.byteText)
        switch name {
        case "cookie" where mayAddCookies: return .unknown
        case "accept-encoding" where values.isEmpty && decodesContent:
            guard headers.contains(.range) else { return .checksum(Self.codingsOfTransport) }
            values = ["identity"]
        case "origin", "user-agent": break
        default:
            let mayChange = laterChange == .any || laterChange == .additions && values.isEmpty
            if mayChange, !Variant.isNegotiation(name) { return .unknown }
        }
        return values.isEmpty ? .absent : .checksum(Variant.checksum(name, values, salt))
    }

    /// Represents the `Accept-Encoding` of the transport, which no request can have.
    private static let codingsOfTransport = Variant.checksum("accept-encoding", ["(of the transport)"], .none)
}

/// A change of the header fields of a request after its look-up in a cache.
package enum FieldChange: Sendable {
    case none
    /// Interceptors of the library add fields, such as those of a trace, but no credentials.
    case additions
    /// The program may change any field.
    case any
}

/// The credentials of a request. A response to a request with credentials is used only for requests with the same ones.
///
/// Header fields with credentials are part of the checksum, as are credentials that the transport sends. Cookies that
/// the transport adds are represented by the partition of their session.
package struct CacheOwner: Hashable, Sendable {
    /// The checksum of the request's credentials; 0 for none.
    package let credentials: UInt64
    /// The checksum of the credentials together with the session's partition.
    package let session: UInt64

    /// Creates an owner.
    package init(credentials: UInt64, session: UInt64) {
        self.credentials = credentials
        self.session = session
    }

    /// No credentials, and no session of its own.
    package static let none = CacheOwner(credentials: 0, session: 0)

    /// Whether a stored response with an owner may be used.
    func mayUse(_ owner: UInt64) -> Bool { owner == credentials || owner == session }
}
