// SPDX-License-Identifier: MIT

package import ANHTTP
import HTTPTypes

/// The meaning of a response to a validation request.
package enum ValidationOutcome: Hashable, Sendable {
    /// The 304 confirms the stored responses with these indices, which are updated; the first one answers the request
    /// (RFC 9111 §4.3.4).
    case confirmed([Int])
    /// The 304 has a strong tag, and confirms the stored response with the weak form of it, which answers the request.
    /// Only responses with the strong tag itself may be updated (§4.3.4), so the next use is validated again.
    case reused(Int)
    /// The 304 is for the program, which sent the precondition. The stored responses that it confirms are
    /// updated.
    case notModified(updating: [Int])
    /// The 304 refers to no stored response, and the program did not ask for one: the request is sent again without
    /// preconditions.
    case mismatch
    /// The response answers the request, and replaces the stored ones if it is storable (§4.3.3).
    case replaced
    /// The server failed, and the stored response answers the request (RFC 5861 §4).
    case failed(StoredUse)

    /// Determines the outcome.
    ///
    /// - Parameters:
    ///   - head: The response.
    ///   - request: The request of the program.
    ///   - stored: The stored responses that the decision was based on.
    ///   - fallback: The use that the decision permits if the server fails.
    package init(
        of head: ResponseHead, to request: CacheRequest, stored: [StoredResponse], ifFailing fallback: StoredUse?
    ) {
        switch head.status.code {
        case 304: self = Self.confirmation(by: head, of: request, stored)
        case 500, 502, 503, 504: self = fallback.map { .failed($0) } ?? .replaced
        default: self = .replaced
        }
    }

    private static func confirmation(
        by head: ResponseHead, of request: CacheRequest, _ stored: [StoredResponse]
    ) -> ValidationOutcome {
        let indices = identified(by: head, for: request, stored)
        if request.isConditional {
            guard addsTag(to: request, stored) else { return .notModified(updating: indices) }
            // Without a tag it is unknown whether the 304 refers to the program's tag or to that of the cache.
            guard let tag = head.headers.first(.eTag).flatMap({ EntityTag(ofField: $0) }) else { return .mismatch }
            let own = EntityTag.list(request.headers[values: .ifNoneMatch])
            if own.contains(where: { $0.matchesWeakly(tag) }) { return .notModified(updating: indices) }
        }
        if !indices.isEmpty { return .confirmed(indices) }
        return identified(by: head, for: request, stored, weakly: true).first.map { .reused($0) } ?? .mismatch
    }

    /// Whether the decision has added the tag of a stored response to those of a request.
    private static func addsTag(to request: CacheRequest, _ stored: [StoredResponse]) -> Bool {
        guard let index = CacheDecision.chooseStored(for: request, from: stored) else { return false }
        return CacheDecision.addedTag(of: stored[index], to: request) != nil
    }

    /// Returns the indices of the stored responses that a 304 refers to (RFC 9111 §4.3.4), beginning with the one that
    /// the decision has chosen, if it is one of them, or else with the most recent one.
    ///
    /// - Parameter weakly: Whether a strong tag may refer to a response with a weak one. A server that compresses
    ///   responses sends the tag in its weak form with them, and in its strong form with the 304.
    private static func identified(
        by head: ResponseHead, for request: CacheRequest, _ stored: [StoredResponse], weakly: Bool = false
    ) -> [Int] {
        let chosen = stored.indices.filter { CacheDecision.mayBeChosen(stored[$0], for: request) }
        // If no response matches the request's fields, the request asked which of the others is the right one.
        let initial =
            chosen.isEmpty ? stored.indices.filter { CacheDecision.isCandidate(stored[$0], for: request) } : chosen
        let recent = initial.sorted {
            (stored[$0].rules.date, stored[$0].responseTime) > (stored[$1].rules.date, stored[$1].responseTime)
        }
        if let field = head.headers.first(where: { $0.name == .eTag }) {
            guard let tag = EntityTag(ofField: field.value) else {
                // A text that is no tag was not sent as a precondition, but still tells responses apart.
                let same = recent.filter { index in
                    stored[index].headers.first { $0.name == .eTag }?.valueBytes == field.valueBytes
                }
                return Array(same.prefix(1))
            }
            let matching = recent.filter { index in
                guard let own = stored[index].rules.entityTag else { return false }
                return tag.isWeak || weakly ? own.matchesWeakly(tag) : own.matchesStrongly(tag)
            }
            if tag.isWeak || weakly { return Array(matching.prefix(1)) }
            let first = CacheDecision.chooseStored(for: request, from: stored)
            return matching.filter { $0 == first } + matching.filter { $0 != first }
        }
        if let text = head.headers.first(.lastModified) {
            return Array(
                recent.filter { stored[$0].rules.lastModifiedText?.trimmingBlanks == text.trimmingBlanks }.prefix(1))
        }
        // Without a validator, the 304 can only refer to the one that the request named. The program's own precondition
        // names none.
        guard initial.count == 1, let only = initial.first else { return [] }
        let hasValidator = stored[only].rules.entityTag != nil || stored[only].rules.lastModified != nil
        return request.isConditional && hasValidator ? [] : initial
    }
}

/// Changes of the stored responses after a response that was not stored itself.
package enum StoredChange: Hashable, Sendable {
    /// The stored response with this index is updated from a response to HEAD.
    case update(Int)
    /// The stored response with this index must be validated before its next use.
    case invalidate(Int)

    /// Returns the changes after a response to HEAD (RFC 9111 §4.3.5).
    package static func after(
        _ head: ResponseHead, toHead request: CacheRequest, stored: [StoredResponse]
    ) -> [StoredChange] {
        guard request.method == .head, head.status.code == 200 else { return [] }
        return stored.indices.filter { CacheDecision.mayBeChosen(stored[$0], for: request) }.map { index in
            isSame(head, as: stored[index]) ? .update(index) : .invalidate(index)
        }
    }

    private static func isSame(_ head: ResponseHead, as response: StoredResponse) -> Bool {
        guard head.status.code == response.status.code else { return false }
        for name in [HTTPField.Name.eTag, .lastModified, .contentLength] {
            guard let provided = head.headers.first(where: { $0.name == name }) else { continue }
            guard let own = response.headers.first(where: { $0.name == name }), own.valueBytes == provided.valueBytes
            else { return false }
        }
        return true
    }
}
