// SPDX-License-Identifier: MIT

package import HTTPTypes

/// The cache directives of a request (RFC 9111 §5.2.1, RFC 5861 §4).
package struct RequestDirectives: Hashable, Sendable {
    /// The greatest acceptable age in seconds; `nil` for any.
    package var maxAge: Int64?
    /// The greatest acceptable staleness in seconds: `nil` for none, `.max` for any.
    package var maxStale: Int64?
    /// The time in seconds for which the response must remain fresh; `nil` for none.
    package var minFresh: Int64?
    /// The staleness in seconds that is acceptable if the server fails; `nil` for none.
    package var staleIfError: Int64?
    /// Whether a stored response must be validated.
    package var noCache = false
    /// Whether neither the request nor its response may be stored.
    package var noStore = false
    /// Whether only a stored response is acceptable.
    package var onlyIfCached = false

    /// Creates an empty set of directives.
    package init() {}

    /// Reads the directives from a request's fields. `Pragma: no-cache` counts if there is no `Cache-Control` (§5.4).
    ///
    /// An invalid `max-age` counts as 0 and an invalid `max-stale` as absent, so that the server is asked.
    package init(_ fields: HTTPFields) {
        let values = fields[values: .cacheControl]
        guard !values.isEmpty else {
            noCache = fields[values: .pragma].contains { CacheDirectives([$0]).contains("no-cache") }
            return
        }
        let directives = CacheDirectives(values)
        maxAge = directives.seconds("max-age").validOrZero
        minFresh = directives.seconds("min-fresh").valid
        staleIfError = directives.seconds("stale-if-error").valid
        noCache = directives.contains("no-cache")
        noStore = directives.contains("no-store")
        onlyIfCached = directives.contains("only-if-cached")
        if let stale = directives.members.first(where: { $0.name == "max-stale" }) {
            maxStale = stale.argument == nil ? .max : directives.seconds("max-stale").valid
        }
    }
}

extension CacheDirectives.Seconds {
    /// The number of seconds, 0 if it is invalid, or `nil` if the directive is absent.
    var validOrZero: Int64? {
        switch self {
        case .absent: nil
        case .invalid: 0
        case .value(let seconds): seconds
        }
    }
}

extension HTTPField.Name {
    /// `Pragma` (RFC 9111 §5.4).
    package static var pragma: HTTPField.Name { Self.known("Pragma") }
    /// `Proxy-Connection`, which is not standardized (RFC 9112 §C.2.2).
    static var proxyConnection: HTTPField.Name { Self.known("Proxy-Connection") }
    /// `Keep-Alive` (RFC 9112 §C.2.2).
    static var keepAlive: HTTPField.Name { Self.known("Keep-Alive") }
    /// `Proxy-Authentication-Info` (RFC 9110 §11.7.3).
    static var proxyAuthenticationInfo: HTTPField.Name { Self.known("Proxy-Authentication-Info") }

    private static func known(_ name: String) -> HTTPField.Name {
        HTTPField.Name(name) ?? .cacheControl
    }
}
