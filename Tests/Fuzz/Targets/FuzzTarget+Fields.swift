// SPDX-License-Identifier: MIT

import ANCache
import ANCurl
import ANHTTP
import ANReachability
import ANSerialization
import AsyncNetworking
import FoundationEssentials
import HTTPTypes

extension FuzzTarget {
    /// Heads, header fields, and the rules that depend on them.
    static let fields: [FuzzTarget] = [
        FuzzTarget("heads", maximumSize: 1_024, checkHeads),
        FuzzTarget("challenges", checkChallenges),
        FuzzTarget("field-values", checkFieldValues),
        FuzzTarget("dates", maximumSize: 64, checkDates),
        FuzzTarget("hosts", maximumSize: 96, checkHosts),
        FuzzTarget("cache-rules", maximumSize: 1_024, checkCacheRules),
    ]

    private static let url = URL(filePath: "/")

    // MARK: Heads

    /// The same lines give the same fields, whether they are compared with no head, with themselves, or with the head in
    /// the first half of the input.
    private static func checkHeads(_ input: [UInt8]) throws {
        let cache = HeaderFieldCache()
        let first = try heads(of: input, cache)
        try requireEqual(try heads(of: input, cache), first, "with the cached fields")
        let (half, rest) = (Array(input.prefix(input.count / 2)), Array(input.dropFirst(input.count / 2)))
        _ = try heads(of: half, cache)
        try requireEqual(
            try heads(of: rest, cache), try heads(of: rest, HeaderFieldCache()), "after the fields of another head")
    }

    /// Returns the result of each line.
    private static func heads(of input: [UInt8], _ cache: HeaderFieldCache) throws -> [String] {
        var parser = HeaderParser(url: url, maximumSize: 768, cache: cache)
        var results: [String] = []
        // The first bit says whether the connection is one of HTTP/1.
        parser.isOnMultiplexedConnection = (input.first ?? 0) & 1 == 0
        var rest = input[...]
        while !rest.isEmpty {
            let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.endIndex
            let line = Array(rest[..<end])
            rest = rest[end...]
            do {
                switch try unsafe line.withUnsafeBufferPointer({ try unsafe parser.receive($0) }) {
                case .none: results.append("more")
                case .informational(let head), .final(let head):
                    try requireValid(head.headers)
                    results.append("\(head.status) \(head.version) \(head.headers)")
                }
            } catch let failure as HeaderParser.Failure {
                results.append("\(failure)")
                break
            }
        }
        let trailers = parser.finishTrailers()
        try requireValid(trailers)
        results.append(
            "\(trailers) \(parser.framing.contentLength.map(String.init) ?? "-") \(parser.framing.isEndedByClose)")
        try require(parser.framing.contentLength ?? 0 >= 0, "the length is not negative")
        return results
    }

    /// Throws if a field could be taken for several ones when it is written again.
    private static func requireValid(_ fields: HTTPFields) throws(Violation) {
        for field in fields {
            try require(field.name.rawName.utf8.allSatisfy(HeaderScanner.isTokenByte), "\(field.name) is a token")
            try require(
                unsafe field.withUnsafeBytesOfValue { unsafe $0.allSatisfy { $0 != 0 && $0 != 10 && $0 != 13 } },
                "\(field) is one line")
        }
    }

    // MARK: Values

    /// Challenges that are written in canonical form are read again.
    private static func checkChallenges(_ input: [UInt8]) throws {
        let challenges = ChallengeParser.challenges(in: String(decoding: input, as: UTF8.self))
        let text = try challenges.map { challenge in
            try require(challenge.scheme.utf8.allSatisfy(HeaderScanner.isTokenByte), "\(challenge.scheme) is a token")
            let parameters = challenge.parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\(quoted($0.value))" }
            return "\(challenge.scheme) \(parameters.joined(separator: ", "))"
        }
        try requireEqual(ChallengeParser.challenges(in: text.joined(separator: ", ")), challenges, "written again")
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.utf8.flatMap { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") ? [0x5C, $0] : [$0] }
        return "\"\(String(decoding: escaped, as: UTF8.self))\""
    }

    /// A file name is a single component; digests, pins and ranges are the same when they are written again.
    private static func checkFieldValues(_ input: [UInt8]) throws {
        let text = String(decoding: input, as: UTF8.self)
        var head = ResponseHead(status: .ok, url: url)
        let names: [HTTPField.Name?] = [
            .contentDisposition, .contentType, .retryAfter, .eTag, .lastModified, .date, .init("Repr-Digest"),
            .init("Content-Digest"),
        ]
        for case let name? in names { head.headers[name] = text }
        if let name = head.suggestedFilename {
            let isComponent = !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7F }
            try require(isComponent && !["", ".", ".."].contains(name), "\(name) is the name of a file")
        }
        try require(head.mediaType?.utf8.contains(UInt8(ascii: ";")) != true, "a media type has no parameters")
        _ = (head.charset, head.retryAfter(now: 0), Representation.Validator(of: head))
        for digest in head.headers.representationDigests + head.headers.contentDigests
            + [ContentDigest(text)].compactMap(\.self)
        {
            try requireEqual(ContentDigest(digest.description), digest, "the digest as text")
        }
        if let range = ContentRange(text) {
            let bytes = range.bytes.map { "\($0.lowerBound)-\($0.upperBound)" } ?? "*"
            let total = range.total.map(String.init) ?? "*"
            try requireEqual(ContentRange("bytes \(bytes)/\(total)"), range, "the range as text")
        }
        if let pin = try? PublicKeyPin(text) {
            try requireEqual(try PublicKeyPin(pin.description), pin, "the pin as text")
        }
        try checkAlternatives(text)
        _ = try? WebSocketDeflate.negotiated([text], isOffered: true)
        _ = try? WebSocketHandshake(WebSocketOptions(), key: Array(repeating: 0, count: 16)).agreement(by: head)
    }

    /// Alternative services are within the limits, and the same when they are read from a file.
    private static func checkAlternatives(_ text: String) throws {
        guard let field = AlternativeServiceField(text), case .alternatives(let alternatives) = field else { return }
        let isLimited =
            alternatives.count <= AlternativeServiceField.maximumCount
            && alternatives.allSatisfy { 1...65_535 ~= $0.port && $0.maximumAge >= 0 }
        try require(isLimited, "\(alternatives) are within the limits")
        var table = HostTable<AlternativeService>()
        let start = Date(timeIntervalSince1970: 0)
        table.note(field, from: .init(host: "a.example", port: 443), age: 0, at: start)
        for service in table.current(at: start) {
            try requireEqual(AlternativeService(fileLine: service.fileLine[...]), service, "the line of the file")
        }
    }

    /// A date is the same as IMF-fixdate.
    private static func checkDates(_ input: [UInt8]) throws {
        let now: Int64 = 1_800_000_000
        guard let date = HTTPDate(String(decoding: input, as: UTF8.self), now: now) else { return }
        // From 0000-01-01 to 9999-12-31, with a leap second. Foundation uses the Julian calendar before 1582.
        try require(-62_167_219_200...253_402_300_800 ~= date.seconds, "\(date.seconds) is in the range of years")
        guard date.seconds >= -12_219_292_800, date.seconds < 253_402_300_800 else { return }
        // The weekday is not compared with the date.
        let parts = Date(timeIntervalSince1970: Double(date.seconds)).formatted(.iso8601).split { "-TZ".contains($0) }
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let text = "Sun, \(parts[2]) \(months[(Int(parts[1]) ?? 0) - 1]) \(parts[0]) \(parts[3]) GMT"
        try requireEqual(HTTPDate(text, now: now), date, text)
    }

    /// A valid name of a host is the same when it is normalized again, and addresses are recognized as such.
    private static func checkHosts(_ input: [UInt8]) throws {
        let text = String(decoding: input, as: UTF8.self)
        let name = HostName(text)
        if let address = IPAddress(text) {
            try requireEqual(IPAddress(address.description), address, "the address as text")
            try require(name.isUsualAddress, "\(text) is an address")
            try requireEqual(HostName(name.text), name, "the address as a name")
        }
        // After a percent sign, a zone that begins with `25` reads like an encoded percent sign.
        guard name.zone?.hasPrefix("25") != true, let pattern = try? HostPattern(text) else { return }
        try requireEqual(try HostPattern(pattern.description), pattern, "the pattern as text")
        guard !text.hasPrefix("*") else { return }
        try requireEqual(HostName(name.zonedText), name, "the name as text")
        try require(pattern.matches(name), "\(pattern) matches itself")
    }

    // MARK: Cache

    /// The decisions about a stored response refer to it, and obey the strongest directives.
    ///
    /// The input has the request's fields, a blank line, and the fields of the stored response.
    private static func checkCacheRules(_ input: [UInt8]) throws {
        var parts = [HTTPFields(), HTTPFields()]
        var part = 0
        for line in input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            if line.isEmpty { part = min(part + 1, 1) }
            let pair = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, let name = HTTPField.Name(String(decoding: pair[0], as: UTF8.self)) else { continue }
            parts[part].append(HTTPField(name: name, value: String(decoding: pair[1], as: UTF8.self)))
        }
        let time = CacheTime(seconds: 1_000_000_000)
        let stored = StoredResponse(
            ResponseHead(status: .ok, headers: parts[1], url: url), bodyLength: 100,
            to: CacheRequest(target: "t", headers: parts[0]), requestTime: time, responseTime: time, owner: 0)
        try checkDecisions(about: stored, headers: parts[0])
    }

    /// Checks the decisions about a stored response for requests with the given fields.
    static func checkDecisions(about stored: StoredResponse, headers: HTTPFields) throws {
        let received = stored.responseTime
        let times = [
            received, received + CacheTime(seconds: 1), received + CacheTime(seconds: 100_000), .zero, .forever,
            CacheTime(milliseconds: .min),
        ]
        for mode in [CacheRequest.Mode.standard, .reload, .revalidate, .acceptStale, .onlyStored] {
            let request = CacheRequest(target: stored.target, headers: headers, mode: mode)
            for now in times {
                let decision = CacheDecision(for: request, stored: [stored], now: now)
                switch decision {
                case .use(let use), .useWhileValidating(let use, _):
                    try requireEqual(use.index, 0, "the index")
                    try require(mode != .reload, "a stored response is used to reload")
                    let isRefused = request.directives.noCache || stored.isInvalidated && mode == .standard
                    try require(!isRefused, "a response is used without validation")
                    if case .range(let range) = use.part {
                        try require(
                            range.lowerBound >= 0 && range.upperBound <= stored.bodyLength, "\(range) is stored")
                    }
                    _ = stored.head(for: use, isValidated: false, at: url)
                case .validate, .forward:
                    try require(mode != .onlyStored, "a request is sent")
                case .refuse:
                    try require(request.directives.onlyIfCached, "an answer is refused")
                }
            }
        }
    }
}
