// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes

/// The rules in a response's header fields: how long it is fresh, and how it may be used afterwards.
package struct ResponseRules: Hashable, Sendable {
    /// The freshness lifetime; `nil` if the response has no explicit lifetime and no heuristic one (RFC 9111 §4.2.1).
    package let lifetime: CacheTime?
    /// The age at the time of receipt: `corrected_initial_age` of RFC 9111 §4.2.3.
    package let initialAge: CacheTime
    /// The value of `Date`; the time of receipt if it is missing or invalid.
    package let date: CacheTime
    /// Whether each use requires validation: `no-cache` without field names (§5.2.2.4).
    package let noCache: Bool
    /// Whether the response must not be used when it is stale: `must-revalidate` (§5.2.2.2).
    package let mustRevalidate: Bool
    /// The staleness at which it may still be used while it is validated: `stale-while-revalidate` (RFC 5861 §3).
    package let staleWhileRevalidate: CacheTime?
    /// The staleness at which it may still be used if the server fails: `stale-if-error` (RFC 5861 §4).
    package let staleIfError: CacheTime?
    /// Whether the directive `immutable` is present; see ``StoredResponse/isImmutable``.
    package let isImmutable: Bool
    /// The value of `ETag`, if it is valid.
    let entityTag: EntityTag?
    /// The text of `Last-Modified`, if it is a date; `nil` otherwise.
    package let lastModifiedText: String?
    /// The value of `Last-Modified`.
    package let lastModified: CacheTime?

    /// The greatest heuristic lifetime.
    package static let longestHeuristicLifetime = CacheTime(seconds: 86_400)

    /// Reads the rules from the fields of a response and the times of its exchange.
    init(
        status: HTTPResponse.Status, _ fields: HTTPFields, requestTime: CacheTime, responseTime: CacheTime
    ) {
        let control = CacheDirectives(fields[values: .cacheControl])
        let date = fields.first(.date).flatMap { CacheTime(httpDate: $0, now: responseTime) } ?? responseTime
        self.date = date
        noCache = control.fieldNames("no-cache")?.isEmpty ?? false
        mustRevalidate = control.contains("must-revalidate")
        staleWhileRevalidate = control.seconds("stale-while-revalidate").valid.map(CacheTime.init(seconds:))
        staleIfError = control.seconds("stale-if-error").valid.map(CacheTime.init(seconds:))
        isImmutable = control.contains("immutable")
        entityTag = fields.first(.eTag).flatMap { EntityTag(ofField: $0) }
        let lastModified = fields.first(.lastModified).flatMap { CacheTime(httpDate: $0, now: responseTime) }
        self.lastModified = lastModified
        lastModifiedText = lastModified == nil ? nil : fields.first(.lastModified)

        // The exchange cannot have ended before it began: a negative delay means that the clock was set back.
        let delay = max(.zero, responseTime - requestTime)
        let apparentAge = max(.zero, responseTime - date)
        initialAge = max(apparentAge, Self.age(fields) + delay)
        lifetime =
            if let seconds = control.seconds("max-age").validOrZero {
                CacheTime(seconds: seconds)
            } else if fields.contains(.expires) {
                Self.lifetime(expires: fields[values: .expires], date: date, now: responseTime)
            } else {
                Self.heuristicLifetime(status, control, lastModified: lastModified, date: date)
            }
    }

    /// Returns the first member of `Age`; 0 if it is missing or invalid (RFC 9111 §5.1).
    private static func age(_ fields: HTTPFields) -> CacheTime {
        let first = HeaderScanner.members(of: fields[values: .age]).first
        return CacheTime(seconds: CacheDirectives.Seconds(first).valid ?? 0)
    }

    /// Returns the lifetime by `Expires`: none if a value is not a date, or if several differ (RFC 9111 §5.3).
    private static func lifetime(expires values: [String], date: CacheTime, now: CacheTime) -> CacheTime {
        guard let first = values.first, values.allSatisfy({ $0 == first }), CacheTime.isExactDate(first),
            let time = CacheTime(httpDate: first, now: now)
        else { return .zero }
        return max(.zero, time - date)
    }

    /// Returns a tenth of the time since the last modification, at most a day, for a response that may be stored
    /// without an explicit lifetime (RFC 9111 §4.2.2).
    private static func heuristicLifetime(
        _ status: HTTPResponse.Status, _ control: CacheDirectives, lastModified: CacheTime?, date: CacheTime
    ) -> CacheTime? {
        guard Storability.isHeuristicallyCacheable(status) || control.contains("public"), let lastModified,
            lastModified < date
        else { return nil }
        return min(CacheTime(milliseconds: (date - lastModified).milliseconds / 10), longestHeuristicLifetime)
    }
}

extension StoredResponse {
    /// Returns the age at a time: `current_age` of RFC 9111 §4.2.3.
    ///
    /// The result is `nil` if the time precedes the receipt of the response: the clock was set back, and the age is
    /// unknown.
    package func age(at now: CacheTime) -> CacheTime? {
        now < responseTime ? nil : rules.initialAge + (now - responseTime)
    }

    /// Whether the response can be used without validation at an age (RFC 9111 §4.2).
    func isFresh(atAge age: CacheTime) -> Bool {
        !isInvalidated && !rules.noCache && age < rules.lifetime ?? .zero
    }

    /// Returns the time by which an age exceeds the lifetime; 0 or less for a fresh response.
    func staleness(atAge age: CacheTime) -> CacheTime {
        age - (rules.lifetime ?? .zero)
    }

    /// Whether the response may be used although it is stale, if the request or another directive permits it
    /// (RFC 9111 §4.2.4).
    var mayBeStale: Bool {
        !isInvalidated && !rules.noCache && !rules.mustRevalidate
    }

    /// Whether the response may be used at an age before a validation has ended (RFC 5861 §3).
    func mayBeUsedBeforeValidation(atAge age: CacheTime) -> Bool {
        mayBeStale && rules.staleWhileRevalidate.map { staleness(atAge: age) <= $0 } ?? false
    }

    /// Whether the response answers requests at a time without waiting for a validation.
    package func answersAtOnce(at now: CacheTime) -> Bool {
        age(at: now).map { isFresh(atAge: $0) || mayBeUsedBeforeValidation(atAge: $0) } ?? false
    }
}
