// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import HTTPTypes
import TestSupport
import Testing

/// Compares the decisions with those of a slow model, for random responses, requests and times.
///
/// The model knows the generated values instead of parsing header fields, and follows RFC 9111 §4 requirement by
/// requirement.
@Suite struct DecisionPropertyTests {
    /// Slow, because a requirement is decisive in few random situations.
    @Test(arguments: 0..<UInt64(rounds(40, few: 8)))
    func `a stored response is used exactly if the model permits it`(seed: UInt64) {
        var random = Random(state: seed &* 7_919 &+ 1)
        for _ in 0..<250 {
            let responses = (0..<random.below(4)).map { _ in ModelResponse(&random) }
            let request = ModelRequest(&random)
            let now = Int64(random.below(400))
            let decision = CacheDecision(
                for: request.value, stored: responses.map(\.value), now: after(now))
            let expected = Model.decide(request, responses, now)
            guard decision.name != expected.name || decision.use?.index != expected.index else { continue }
            Issue.record(
                """
                \(decision.name) \(decision.use?.index ?? -1) instead of \(expected.name) \(expected.index ?? -1)
                at \(now) for \(request)
                \(responses.map { "\($0)" }.joined(separator: "\n"))
                """)
        }
    }
}

/// Small pseudorandom numbers.
private struct Random {
    var state: UInt64

    mutating func below(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % bound
    }

    /// Returns a value with a probability of 1 in `rarity`.
    mutating func sometimes<Value>(_ rarity: Int, _ value: (inout Random) -> Value) -> Value? {
        below(rarity) == 0 ? value(&self) : nil
    }
}

private struct ModelResponse {
    var received: Int64
    var delay: Int64
    var date: Int64
    var age: Int64?
    var maxAge: Int64?
    var expires: Int64?
    var modified: Int64?
    var noCache: Bool
    var mustRevalidate: Bool
    var immutable: Bool
    var staleWhileRevalidate: Int64?
    var vary: Bool
    var language: Int
    var hasTag: Bool
    var owner: UInt64

    init(_ random: inout Random) {
        received = Int64(random.below(150))
        delay = Int64(random.below(3))
        date = received - Int64(random.below(8)) + 2
        age = random.sometimes(3) { Int64($0.below(40)) }
        maxAge = random.sometimes(2) { Int64($0.below(200)) }
        expires = random.sometimes(3) { Int64($0.below(250)) }
        modified = random.sometimes(3) { -Int64($0.below(2_000)) }
        noCache = random.below(10) == 0
        mustRevalidate = random.below(5) == 0
        immutable = random.below(5) == 0
        staleWhileRevalidate = random.sometimes(3) { Int64($0.below(100)) }
        vary = random.below(2) == 0
        language = random.below(3)
        hasTag = random.below(2) == 0
        owner = random.below(6) == 0 ? 7 : 0
    }

    var value: StoredResponse {
        var lines = cacheControl(
            ["no-cache": noCache, "must-revalidate": mustRevalidate, "immutable": immutable],
            ["max-age": maxAge, "stale-while-revalidate": staleWhileRevalidate])
        // Otherwise `immutable` has no effect.
        lines += ["Content-Length: 1", "Date: \(ANCacheTests.date(date))"]
        if let age { lines.append("Age: \(age)") }
        if let expires { lines.append("Expires: \(ANCacheTests.date(expires))") }
        if let modified { lines.append("Last-Modified: \(ANCacheTests.date(modified))") }
        if vary { lines.append("Vary: Accept-Language") }
        if hasTag { lines.append("ETag: \"a\"") }
        return StoredResponse(
            ResponseHead(200, lines), trailers: [:], bodyLength: 1, to: ModelRequest.language(language),
            requestTime: after(received - delay), responseTime: after(received), owner: owner)
    }
}

private let securePage = "https://a.example/x"

private struct ModelRequest {
    var mode: CacheRequest.Mode
    var maxAge: Int64?
    var maxStale: Int64?
    var minFresh: Int64?
    var noCache: Bool
    var onlyIfCached: Bool
    var language: Int
    var owner: UInt64

    init(_ random: inout Random) {
        mode = [.standard, .standard, .standard, .reload, .revalidate, .acceptStale, .onlyStored][random.below(7)]
        maxAge = random.sometimes(5) { Int64($0.below(200)) }
        maxStale = random.sometimes(5) { Int64($0.below(200)) }
        minFresh = random.sometimes(5) { Int64($0.below(100)) }
        noCache = random.below(12) == 0
        onlyIfCached = random.below(12) == 0
        language = random.below(3)
        owner = random.below(4) == 0 ? 7 : 0
    }

    var value: CacheRequest {
        let lines = cacheControl(
            ["no-cache": noCache, "only-if-cached": onlyIfCached],
            ["max-age": maxAge, "max-stale": maxStale, "min-fresh": minFresh])
        return CacheRequest(
            target: securePage, headers: fields(lines) + Self.language(language).headers, mode: mode,
            owner: CacheOwner(credentials: owner, session: owner))
    }

    static func language(_ number: Int) -> CacheRequest {
        number == 0 ? .get(target: securePage) : .get("Accept-Language: l\(number)", target: securePage)
    }
}

/// A field line for each directive that is set.
private func cacheControl(
    _ flags: KeyValuePairs<String, Bool>, _ seconds: KeyValuePairs<String, Int64?>
) -> [String] {
    let directives =
        flags.filter(\.value).map(\.key) + seconds.compactMap { name, value in value.map { "\(name)=\($0)" } }
    return directives.map { "Cache-Control: \($0)" }
}

private enum Model {
    static func decide(
        _ request: ModelRequest, _ responses: [ModelResponse], _ now: Int64
    ) -> (name: String, index: Int?) {
        let forbidsSending =
            request.mode == .onlyStored
            || request.onlyIfCached && request.mode != .reload && request.mode != .revalidate
        func sending(_ name: String) -> (name: String, index: Int?) { (forbidsSending ? "refuse" : name, nil) }
        guard request.mode != .reload, !responses.isEmpty else { return sending("forward") }
        // §4: the target, the method and the owner are right for all of these; §4.1: so are the fields of Vary.
        let candidates = responses.indices.filter { responses[$0].owner == request.owner }
        let matching = candidates.filter { !responses[$0].vary || responses[$0].language == request.language }
        guard let index = mostRecent(matching, responses) else {
            return sending(candidates.contains { responses[$0].hasTag } ? "validate" : "forward")
        }
        let response = responses[index]
        // A clock that was set back.
        guard now >= response.received else { return sending("validate") }
        // §4.2.3
        let apparent = max(0, response.received - response.date)
        let corrected = (response.age ?? 0) + response.delay
        let age = max(apparent, corrected) + now - response.received
        // §4.2.1, in tenths of seconds because of the heuristic.
        var lifetime: Int64 = 0
        if let maxAge = response.maxAge {
            lifetime = maxAge * 10
        } else if let expires = response.expires {
            lifetime = max(0, expires - response.date) * 10
        } else if let modified = response.modified, modified < response.date {
            lifetime = min(response.date - modified, 864_000)
        }
        let isFresh = lifetime > age * 10 && !response.noCache
        let refusesAge = request.noCache || age > request.maxAge ?? .max
        if isFresh, !refusesAge, request.mode != .revalidate || response.immutable {
            if request.mode == .revalidate { return ("fresh", index) }
            if age * 10 + (request.minFresh ?? 0) * 10 <= lifetime { return ("fresh", index) }
        }
        // §4.2.4
        let staleness = age * 10 - lifetime
        let mayBeStale =
            !response.noCache && !response.mustRevalidate && request.mode != .revalidate && !refusesAge
            && request.minFresh == nil
        let accepted: Int64? = request.mode == .acceptStale || request.mode == .onlyStored ? .max : request.maxStale
        if !isFresh, mayBeStale, let accepted, accepted == .max || staleness <= accepted * 10 {
            return ("stale", index)
        }
        if mayBeStale, let wait = response.staleWhileRevalidate, staleness <= wait * 10 {
            return (forbidsSending ? (isFresh ? "fresh" : "stale") : "background", index)
        }
        return sending("validate")
    }

    /// §4, §4.1: by Date, and those with Vary first.
    private static func mostRecent(_ indices: [Int], _ responses: [ModelResponse]) -> Int? {
        let varied = indices.filter { responses[$0].vary }
        let pool = varied.isEmpty ? indices : varied
        guard let best = pool.map({ (responses[$0].date, responses[$0].received) }).max(by: <) else { return nil }
        return pool.first { (responses[$0].date, responses[$0].received) == best }
    }
}

extension HTTPFields {
    fileprivate static func + (left: HTTPFields, right: HTTPFields) -> HTTPFields {
        var sum = left
        sum.append(contentsOf: right)
        return sum
    }
}
