// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
import HTTPTypes

/// Whether a private cache stores a response (RFC 9111 §3).
package enum Storability {
    /// Returns whether a complete response to a request may be stored.
    ///
    /// | requirement | section |
    /// |---|---|
    /// | the method is GET, without a body | RFC 9111 §3 |
    /// | the status is final and not 206, 304, 401, 407 or 416, nor 412 to a precondition | §3, §3.3; RFC 9110 §13.1, §15.5.17 |
    /// | the status is not 428, 429, 431 or 511 | RFC 6585 §3 to §6 |
    /// | no `no-store` in the request, nor in a response without `must-understand` | §5.2.1.5, §5.2.2.3, §5.2.2.5 |
    /// | with `must-understand`, the status is one of RFC 9110 | §5.2.2.3 |
    /// | the response has `max-age`, `Expires`, `public` or `private`, or a heuristically cacheable status | §3 |
    /// | `Vary` does not contain `*`, unless the response can be validated | §4.1 |
    package static func isStorable(_ head: ResponseHead, to request: CacheRequest) -> Bool {
        guard request.isStorable, head.status.code >= 200 else { return false }
        switch head.status.code {
        case 206, 304, 416: return false
        // Its challenge belongs to the connection.
        case 401, 407: return false
        // About a single request, or the network on the way to the server, whatever its fields say.
        case 428, 429, 431, 511: return false
        // The precondition is not part of the cache's key.
        case 412 where request.headers.contains(.ifMatch) || request.headers.contains(.ifUnmodifiedSince): return false
        default: break
        }
        let control = CacheDirectives(head.headers[values: .cacheControl])
        if control.contains("must-understand") {
            guard isUnderstood(head.status) else { return false }
        } else if control.contains("no-store") {
            return false
        }
        return control.contains("max-age") || control.contains("public") || control.contains("private")
            || head.headers.contains(.expires) || isHeuristicallyCacheable(head.status)
    }

    /// Returns whether the fields of a response say anything about its freshness or can validate it. If not, it is not
    /// useful to a request that does not accept stale responses.
    package static func hasCachingFields(_ head: ResponseHead) -> Bool {
        head.headers.contains {
            switch $0.name {
            case .cacheControl, .eTag, .lastModified, .expires: true
            default: false
            }
        }
    }

    /// Returns whether a response is worth storing: it is fresh for some time, can be validated, or may be used stale.
    ///
    /// - Parameter acceptsStale: Whether the request accepts a stale response, so that a later one may as well.
    package static func isUseful(_ stored: StoredResponse, acceptsStale: Bool) -> Bool {
        let rules = stored.rules
        if rules.entityTag != nil || rules.lastModified != nil { return true }
        guard !stored.variant.matchesNothing, !rules.noCache else { return false }
        return acceptsStale || (rules.lifetime ?? .zero) > .zero || rules.staleWhileRevalidate != nil
            || rules.staleIfError != nil
    }

    /// Returns whether the stored response that a later one describes may remain stored.
    package static func permitsKeeping(_ head: ResponseHead) -> Bool {
        let control = CacheDirectives(head.headers[values: .cacheControl])
        return control.contains("must-understand") || !control.contains("no-store")
    }

    /// Returns whether a response that is not stored supersedes the stored ones: a new state of the resource, and
    /// neither a part of it nor a failure.
    package static func replacesStored(_ head: ResponseHead, to request: CacheRequest) -> Bool {
        guard request.method == .get, !request.hasBody, !request.isConditional else { return false }
        switch head.status.code {
        case 206, 304: return false
        case 200..<400, 404, 410: return true
        default: return false
        }
    }

    /// Whether a status is defined as heuristically cacheable (RFC 9110 §15.1), and complete responses with it are.
    static func isHeuristicallyCacheable(_ status: HTTPResponse.Status) -> Bool {
        switch status.code {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether a status is defined by RFC 9110 §15, and all its caching requirements are implemented.
    private static func isUnderstood(_ status: HTTPResponse.Status) -> Bool {
        switch status.code {
        case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }
}

/// The stored responses that a response to an unsafe request makes obsolete (RFC 9111 §4.4).
package enum Invalidation {
    /// Returns the targets whose stored responses are removed: the request's own, and those of `Location` and
    /// `Content-Location` in the same origin. Empty unless the method is unsafe and the status is 2xx or 3xx.
    package static func targets(of head: ResponseHead, to request: CacheRequest, at url: URL) -> Set<String> {
        guard !request.isSafe, (200..<400).contains(head.status.code) else { return [] }
        let own = CacheKey.origin(of: request.target)
        var targets: Set = [request.target]
        for name in [HTTPField.Name.location, .contentLocation] {
            for field in head.headers where field.name == name {
                guard let other = URL(reference: field.reference, relativeTo: url) else { continue }
                let target = CacheKey.target(other)
                if CacheKey.origin(of: target) == own { targets.insert(target) }
            }
        }
        return targets
    }
}
