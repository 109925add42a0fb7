// SPDX-License-Identifier: MIT

import ANHTTP
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// Oracle 5: a second model of RFC 9111, which knows nothing of `ANCache`.
///
/// It does not decide what a cache answers. It sees a response that a call has received and everything that the
/// servers have sent, and says why RFC 9111 forbids that response; `nil` if it is permitted.
struct CacheOracle {
    let response: ServedResponse
    /// The header fields of the request for which the response was used, and the cache mode of its call.
    let request: HTTPFields
    let mode: CacheMode
    /// The cache partition of the session.
    let partition: String
    /// The exchanges of the call.
    let exchanges: [Ledger.Arrival]
    /// All exchanges of the world, for invalidation and validation.
    let all: [Ledger.Arrival]
    /// When the call began and ended, in milliseconds since 1970, and when the response was used.
    let begin: Int64
    let now: Int64

    enum CacheMode: Int { case standard, reload, revalidate, elseLoad, dontLoad, noCache, noStore }

    /// Why the response is forbidden.
    var violation: String? {
        // A response that the call itself received needs no permission.
        if exchanges.contains(where: { $0.responseID == response.id }) { return nil }
        if let reason = owner { return reason }
        let directives = Directives(response.headers)
        if directives.has("no-store") { return "it was stored in spite of no-store (§5.2.2.5)" }
        if Directives(response.request).has("no-store") { return "its request had no-store (§5.2.1.5)" }
        if let reason = mismatch { return reason }
        if let reason = invalidation { return reason }
        // Validated in this call (§4.3.4): it may be used whatever its age.
        if exchanges.contains(where: { $0.isConfirmation && $0.hasHead }) { return nil }
        switch mode {
        case .reload: return "the request demands a new response (§5.2.1.4)"
        case .revalidate, .noCache:
            // After a failure, stale-if-error permits a stored response regardless of other directives about freshness
            // (RFC 5861 §4).
            guard directives.has("stale-if-error"), hasFailed else {
                return "the request demands a validation (§5.2.1.1)"
            }
        case .elseLoad, .dontLoad, .standard, .noStore: break
        }
        if directives.has("no-cache") { return "no-cache demands a validation (§5.2.2.4)" }
        return staleness(directives)
    }

    /// Sessions of one user share all responses, others only those to requests without credentials.
    private var owner: String? {
        let isShared = [partition, response.partition].allSatisfy { $0.hasPrefix(Runner.unnamed) }
        if isShared {
            let cookie = response.request[.cookie]
            return cookie == nil || cookie == request[.cookie] ? nil : "it was stored for \(cookie ?? "")"
        }
        return response.partition == partition ? nil : "it was stored for \(response.partition), not for \(partition)"
    }

    /// A stored response is used only for requests with the same values of the fields that `Vary` names (§4.1).
    private var mismatch: String? {
        guard let vary = response.headers[.vary] else { return nil }
        for name in vary.split(separator: ",").compactMap({ HTTPField.Name($0.filter { $0 != " " }) }) {
            if response.request[name] != request[name] {
                return
                    "its \(name) was \(response.request[name] ?? "missing"), not \(request[name] ?? "missing") (§4.1)"
            }
        }
        return nil
    }

    /// A successful response to an unsafe method invalidates what is stored for its URL (§4.4).
    private var invalidation: String? {
        let unsafe = all.last { arrival in
            guard arrival.request.url.absoluteString == response.url,
                ![.get, .head, .options, .trace].contains(arrival.request.method),
                case .status(200..<400) = arrival.outcome
            else { return false }
            // One that has ended before this call began, and begun after the response was sent.
            return !arrival.isOpen && arrival.hasHead && arrival.date + 2_000 < begin
                && arrival.date > response.dates[0] + 2_000
        }
        return unsafe.map { "\($0.request.method) has invalidated it \(now - $0.date) ms ago (§4.4)" }
    }

    /// A stale response is used only where the request or the response permits it (§4.2.4, RFC 5861).
    private func staleness(_ directives: Directives) -> String? {
        // The age is at least the time since the response was sent or confirmed last (§4.2.3).
        let confirmations = response.dates.filter { $0 <= now }
        let age = begin - (confirmations.max() ?? now)
        let lifetime = lifetime(directives)
        guard age > lifetime else { return nil }
        if directives.has("must-revalidate"), mode != .dontLoad {
            return "it is stale and must be validated (§5.2.2.2)"
        }
        if mode == .elseLoad || mode == .dontLoad { return nil }
        if let extra = directives.seconds("stale-while-revalidate"), age <= lifetime + extra * 1_000 { return nil }
        if let extra = directives.seconds("stale-if-error"), age <= lifetime + extra * 1_000, hasFailed {
            return nil
        }
        return "it is stale: its age is at least \(age) ms, its lifetime \(lifetime) ms (§4.2)"
    }

    /// Whether an exchange of the call has failed, as far as the client can know.
    private var hasFailed: Bool {
        exchanges.contains { exchange in
            switch exchange.outcome {
            case .status(500...), .refused, .lost, .silent, .noRoute: true
            case .status: !exchange.hasHead
            }
        }
    }

    /// The freshness lifetime in milliseconds (§4.2.1), of a private cache. A heuristic one (§4.2.2) is at most a tenth
    /// of the time since the last modification.
    private func lifetime(_ directives: Directives) -> Int64 {
        if let seconds = directives.seconds("max-age") { return seconds * 1_000 }
        guard response.headers[.lastModified] != nil else { return 0 }
        return (response.dates[0] - 1_000_000_000_000) / 10
    }

    /// The directives of `Cache-Control` (§5.2).
    private struct Directives {
        private var values: [String: String] = [:]

        init(_ headers: HTTPFields) {
            for part in headers[.cacheControl]?.split(separator: ",") ?? [] {
                let words = part.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
                values[words[0].lowercased()] = words.count > 1 ? words[1] : ""
            }
        }

        func has(_ name: String) -> Bool { values[name] != nil }
        func seconds(_ name: String) -> Int64? { values[name].flatMap { Int64($0) } }
    }
}
