// SPDX-License-Identifier: MIT

import ANHTTP
package import HTTPTypes

/// The use of stored responses for a request, decided from the responses for its target and the time.
package enum CacheDecision: Hashable, Sendable {
    /// Answers with a stored response, without a request.
    case use(StoredUse)
    /// Answers with a stale stored response, and validates it in the background with these fields (RFC 5861 §3).
    case useWhileValidating(StoredUse, HTTPFields)
    /// Sends the request with these fields; a 304 refers to a stored response. If the server fails, the use with an
    /// index is permitted (RFC 5861 §4).
    case validate(HTTPFields, ifFailing: StoredUse?)
    /// Sends the request unchanged; a 304 is for the program.
    case forward
    /// Answers that no stored response is suitable: the request accepts only a stored one (RFC 9111 §5.2.1.7).
    case refuse

    /// Decides about a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - stored: The stored responses for its target, in any order; the indices of the result refer to them.
    ///   - now: The time.
    ///   - validatesInBackground: Whether a response may be used before it is validated. If not, it may still be used if
    ///     the server fails.
    package init(
        for request: CacheRequest, stored: [StoredResponse], now: CacheTime, validatesInBackground: Bool = true
    ) {
        let decision = Self.decide(request, stored, now, validatesInBackground)
        switch decision {
        case .validate, .forward: self = request.directives.onlyIfCached ? .refuse : decision
        case .useWhileValidating(let use, _): self = request.directives.onlyIfCached ? .use(use) : decision
        case .use, .refuse: self = decision
        }
    }

    private static func decide(
        _ request: CacheRequest, _ stored: [StoredResponse], _ now: CacheTime, _ validatesInBackground: Bool
    ) -> CacheDecision {
        guard request.mayUseStored, !stored.isEmpty else { return .forward }
        guard let index = chooseStored(for: request, from: stored) else {
            return selectOther(for: request, from: stored)
        }
        let response = stored[index]
        // Without an age, the clock is not reliable.
        guard let age = response.age(at: now) else { return validation(of: response, for: request, ifFailing: nil) }
        let use = StoredUse(index: index, age: age, isStale: !response.isFresh(atAge: age))
        let presented = use.presented(response, to: request)
        if permits(use, of: response, for: request) { return presented.map { .use($0) } ?? .forward }
        let mayWait = response.mayBeUsedBeforeValidation(atAge: age) && mayWait(request, age)
        if mayWait, validatesInBackground, let presented {
            return .useWhileValidating(presented, validators(of: response))
        }
        var fallback: StoredUse?
        if response.mayBeStale {
            let limit = [response.rules.staleIfError, request.directives.staleIfError.map(CacheTime.init(seconds:))]
                .compactMap(\.self).max()
            if mayWait || limit.map({ response.staleness(atAge: age) <= $0 }) ?? false {
                fallback = presented
                fallback?.isStale = true
            }
        }
        return validation(of: response, for: request, ifFailing: fallback)
    }

    // MARK: Choice

    /// Returns the index of the most recent stored response that matches a request; one with `Vary` is preferred to one
    /// without (RFC 9111 §4, §4.1).
    static func chooseStored(for request: CacheRequest, from stored: [StoredResponse]) -> Int? {
        var best: Int?
        for index in stored.indices where mayBeChosen(stored[index], for: request) {
            guard let current = best else {
                best = index
                continue
            }
            let (new, old) = (stored[index], stored[current])
            if new.variant.isEmpty != old.variant.isEmpty {
                if old.variant.isEmpty { best = index }
            } else if (new.rules.date, new.responseTime) > (old.rules.date, old.responseTime) {
                best = index
            }
        }
        return best
    }

    /// Returns whether a stored response is for the request's target, owner and fields.
    static func mayBeChosen(_ response: StoredResponse, for request: CacheRequest) -> Bool {
        isCandidate(response, for: request) && response.variant.matches(request)
    }

    /// Returns whether a stored response is for the request's target and owner, and in a coding that it accepts.
    static func isCandidate(_ response: StoredResponse, for request: CacheRequest) -> Bool {
        response.target == request.target && request.owner.mayUse(response.owner)
            && (response.isDecoded == request.decodesContent || !response.isEncoded)
    }

    /// Returns whether a stored response is obsolete after a newer response to a request: the request could have been
    /// answered with it, or it has the variant of the newer one.
    package static func isReplaced(
        _ old: StoredResponse, by new: StoredResponse?, to request: CacheRequest
    ) -> Bool {
        guard old.target == request.target, old.owner == new?.owner || request.owner.mayUse(old.owner) else {
            return false
        }
        return old.variant.matches(request) || old.variant == new?.variant
    }

    /// Asks which of the stored responses for other request fields is the right one (RFC 9111 §4.1, §4.3.1).
    private static func selectOther(for request: CacheRequest, from stored: [StoredResponse]) -> CacheDecision {
        guard !request.isConditional, !request.headers.contains(.range) else { return .forward }
        let recent = stored.filter { isCandidate($0, for: request) }
            .sorted { ($0.rules.date, $0.responseTime) > ($1.rules.date, $1.responseTime) }
        var tags: [String] = []
        var length = 0
        for tag in recent.compactMap({ $0.rules.entityTag?.text }) where tags.count < mostTags && !tags.contains(tag) {
            guard length + tag.utf8.count <= longestTags else { continue }
            tags.append(tag)
            length += tag.utf8.count
        }
        guard !tags.isEmpty else { return .forward }
        return .validate([.ifNoneMatch: tags.sorted().joined(separator: ", ")], ifFailing: nil)
    }

    /// The number of tags that are offered, and their length together. Servers refuse long fields.
    private static let (mostTags, longestTags) = (8, 4_096)

    // MARK: Freshness

    /// Returns whether a stored response may be used without validation.
    private static func permits(_ use: StoredUse, of response: StoredResponse, for request: CacheRequest) -> Bool {
        let directives = request.directives
        guard !directives.noCache, use.age <= directives.maxAge.map(CacheTime.init(seconds:)) ?? .forever else {
            return false
        }
        if !use.isStale {
            if request.mode == .revalidate { return response.isImmutable }
            return use.age + CacheTime(seconds: directives.minFresh ?? 0) <= response.rules.lifetime ?? .zero
        }
        guard response.mayBeStale, request.mode != .revalidate, let limit = directives.maxStale else { return false }
        let maximum = limit == .max ? CacheTime.forever : CacheTime(seconds: limit)
        return directives.minFresh == nil && response.staleness(atAge: use.age) <= maximum
    }

    /// Whether the request accepts a response of an age while a newer one is fetched.
    private static func mayWait(_ request: CacheRequest, _ age: CacheTime) -> Bool {
        let directives = request.directives
        return !directives.noCache && directives.minFresh == nil && request.mode != .revalidate
            && age <= directives.maxAge.map(CacheTime.init(seconds:)) ?? .forever
    }

    // MARK: Validation

    /// Returns the fields that make a request conditional on a stored response (RFC 9111 §4.3.1).
    private static func validators(of response: StoredResponse) -> HTTPFields {
        var fields = HTTPFields()
        if let tag = response.rules.entityTag { fields[.ifNoneMatch] = tag.text }
        if let date = response.rules.lastModifiedText { fields[.ifModifiedSince] = date }
        return fields
    }

    /// Makes a request conditional on a stored response; tags are added to those of the request.
    ///
    /// A request for a range, or with a date of its own, is sent unchanged.
    private static func validation(
        of response: StoredResponse, for request: CacheRequest, ifFailing fallback: StoredUse?
    ) -> CacheDecision {
        let isForRange = request.headers.contains(.range) && request.method == .get
        guard !isForRange else { return .forward }
        guard request.isConditional else { return .validate(validators(of: response), ifFailing: fallback) }
        guard let tag = addedTag(of: response, to: request) else { return .validate([:], ifFailing: fallback) }
        let own = request.headers[values: .ifNoneMatch]
        return .validate([.ifNoneMatch: (own + [tag.text]).joined(separator: ", ")], ifFailing: fallback)
    }

    /// Returns the tag of a stored response if it is added to those of a conditional request; `nil` if the request has
    /// none, or has that one.
    static func addedTag(of response: StoredResponse, to request: CacheRequest) -> EntityTag? {
        let own = request.headers[values: .ifNoneMatch]
        guard let tag = response.rules.entityTag, !own.isEmpty, !own.contains(where: { $0.trimmingBlanks == "*" }),
            !EntityTag.list(own).contains(where: { $0.matchesWeakly(tag) })
        else { return nil }
        return tag
    }
}

extension EntityTag {
    /// The tag as in a header field.
    var text: String { (isWeak ? "W/" : "") + opaque.text }
}
