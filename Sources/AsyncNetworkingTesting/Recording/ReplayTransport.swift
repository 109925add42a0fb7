// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
import HTTPTypes

/// A transport without a network that answers requests with the responses of an HTTP archive, a cassette.
///
/// ```swift
/// let api = SessionManager { $0.transport = replay }
/// ```
///
/// A ``RecordingTransport`` writes cassettes; archives of browsers and of a `HARRecorder` can be replayed, too, as far as
/// they contain bodies, without the responses of a session's cache. Each exchange is replayed once. Responses come at once, with their bodies as they were after
/// decompression, of which `Content-Length` is the size, and without digests, which may be those of other bytes. A request
/// for which there is no exchange fails with a ``ReplayFailure``, and an exchange that failed when it was recorded fails
/// with one, too. One of whose response only a part was recorded, or nothing although it has a body, fails after that part.
public struct ReplayTransport: Transport {
    private let mock: MockTransport
    private let cassette: Cassette

    /// Reads a cassette.
    ///
    /// - Parameters:
    ///   - path: The path of the archive.
    ///   - matching: The rule by which an exchange is found for a request; ``ReplayMatching/anyOrder`` by default.
    ///   - redaction: The rules for hiding secrets, of the recorded requests and of those that are sent, which are
    ///     compared without them; ``ANHTTP/Redaction/byName`` by default. A cassette that was recorded by rules that hide
    ///     more requires these.
    /// - Throws: An error of Foundation for a file that cannot be read, or `DecodingError` for one that is no archive.
    public init(
        from path: String, matching: ReplayMatching = .anyOrder, redacting redaction: Redaction = .byName
    ) throws {
        let archive = try HAR(Data(contentsOf: URL(filePath: path)))
        self.init(Cassette(archive.entries, matching, redaction))
    }

    init(_ cassette: Cassette) {
        self.cassette = cassette
        mock = MockTransport(
            receiving: { received in
                try MockResponse(received.request.recordedEntry ?? cassette.take(received).entry)
            }, clock: ContinuousClock())
    }

    /// Throws if a request is not accepted any more.
    func checkRunning(_ request: Request) throws(TransportError) { try mock.checkRunning(request) }

    /// Runs a closure that is cancelled when the request is not accepted any more.
    func untilEnd(of request: Request, _ work: @escaping @Sendable () async throws -> Void) async throws {
        try await mock.untilEnd(of: request, work)
    }

    /// The requests that were recorded and not replayed, as `GET http://a.example/`; empty if all were.
    public var unused: [String] { cassette.unused }

    /// Returns the response that was recorded for a request.
    ///
    /// - Throws: ``ReplayFailure``, `CancellationError`, or the errors of a ``MockTransport`` for bodies.
    public func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        try await mock.open(request, delivery: delivery, reporting: events)
    }

    /// The features of a ``MockTransport``.
    public var features: TransportFeatures { mock.features }

    /// Ends all exchanges; later ones fail.
    public func shutdown() async { await mock.shutdown() }
}

/// The rule by which a ``ReplayTransport`` finds the recorded exchange for a request.
public struct ReplayMatching: Sendable {
    let isOrdered: Bool
    let matches: (@Sendable (_ sent: Request, _ recorded: Request) -> Bool)?

    /// The first exchange with the same method, URL and body that was not replayed yet. The order of the members of JSON
    /// is not compared, nor that of query parameters with different names, since that of a dictionary differs between
    /// runs; a parameter without a value is one with an empty value.
    public static let anyOrder = ReplayMatching(isOrdered: false, matches: nil)
    /// The next exchange, which must have the same method, URL and body: requests are sent in the recorded order, which
    /// in the archive of a `HARRecorder` is that in which the exchanges ended.
    public static let ordered = ReplayMatching(isOrdered: true, matches: nil)

    /// The first exchange that was not replayed yet and for which a closure returns `true`.
    ///
    /// - Parameter matches: Receives the request that is sent, and one that was recorded, both with bodies in memory and
    ///   without secrets.
    public static func custom(
        _ matches: @escaping @Sendable (_ sent: Request, _ recorded: Request) -> Bool
    ) -> ReplayMatching {
        ReplayMatching(isOrdered: false, matches: matches)
    }
}

/// The reason why a request could not be replayed.
public struct ReplayFailure: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The request without its secrets, the nearest recorded one, and what differs.
    public let description: String

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }
}

extension HAR.Content {
    fileprivate var isBase64: Bool { encoding?.lowercased() == "base64" }
}

extension HAR.Entry {
    /// The reason why the exchange cannot be replayed, as a sentence; `nil` if it can, at least in part.
    var obstacle: String? {
        // A status of other than three digits is not one of HTTP.
        guard error == nil, (100...999).contains(response.status) else {
            return "\(request.line) failed when it was recorded: \(error ?? "for an unknown reason")"
        }
        if response.content.isBase64, Data(wrappedBase64: response.content.text ?? "") == nil {
            return "The recorded body of \(request.line) is no Base64."
        }
        return nil
    }

    /// Whether only a part of the response's body was recorded. Archives of other programs may be written without bodies;
    /// that of an error or a redirect is not missed.
    var isPartial: Bool {
        if response.content.isTruncated == true { return true }
        guard response.content.text == nil, response.content.size > 0 else { return false }
        return request.method != "HEAD" && response.status < 300 && response.status != 204
    }

    /// Whether the recorder has left a part out, which the program has read.
    var isCutByLimit: Bool { isPartial && (response.content.comment != nil || response.content.text == nil) }

    /// The end of a body of which only a part was recorded.
    fileprivate var cut: ReplayFailure {
        let part = response.content.text == nil ? "without its body" : "in part"
        let comment = response.content.comment.map { ": \($0)" } ?? ""
        return ReplayFailure(description: "The response to \(request.line) was recorded \(part)\(comment)")
    }

    /// Whether the entry is an exchange with a server: not a response of the cache, beside which a validation has an entry
    /// of its own. One whose end its call did not wait for, because another request was answered, is not repeated.
    var isReplayed: Bool { source == nil && error != Self.superseded }
}

/// The exchanges of a cassette, each of which is replayed once.
final class Cassette: Sendable {
    private let matching: ReplayMatching
    private let redaction: Redaction
    private let entries: [HAR.Entry]
    /// The place of each exchange in the archive, from 1 on.
    private let numbers: [Int]
    /// The indices of the exchanges that were replayed.
    private let replayed = Lock<Set<Int>>([])

    init(_ entries: [HAR.Entry], _ matching: ReplayMatching, _ redaction: Redaction) {
        self.matching = matching
        self.redaction = redaction
        let replayed = entries.enumerated().filter(\.element.isReplayed)
        self.entries = replayed.map { _, entry in
            // The archive of another program, or by other rules, has secrets and random boundaries.
            var entry = entry
            entry.request = redaction.recorded(entry.request)
            entry.error = entry.error.map(redaction.text)
            return entry
        }
        numbers = replayed.map { $0.offset + 1 }
    }

    var unused: [String] {
        let replayed = replayed.withLock(\.self)
        return entries.indices.filter { !replayed.contains($0) }.map { entries[$0].request.line }
    }

    /// Returns the exchange for a request with its index, and marks it as replayed.
    func take(_ received: MockTransport.ReceivedRequest) throws -> (index: Int, entry: HAR.Entry) {
        let sent = redaction.recorded(received.request, body: received.body)
        var index: Int
        // The program's closure chooses without the lock. Another request may take the same exchange meanwhile.
        repeat { index = try choose(for: sent) } while !replayed.withLock { $0.insert(index).inserted }
        let entry = entries[index]
        if let obstacle = entry.obstacle { throw ReplayFailure(description: obstacle) }
        return (index, entry)
    }

    /// Returns the index of the exchange for a request.
    private func choose(for sent: HAR.Request) throws(ReplayFailure) -> Int {
        let replayed = replayed.withLock(\.self)
        let left = entries.indices.filter { !replayed.contains($0) }
        let candidates = matching.isOrdered ? Array(left.prefix(1)) : left
        guard let index = candidates.first(where: { fits(sent, entries[$0].request) }) else {
            throw ReplayFailure(description: explanation(sent, replayed, candidates))
        }
        return index
    }

    private func fits(_ sent: HAR.Request, _ recorded: HAR.Request) -> Bool {
        guard let matches = matching.matches else { return sent.differences(from: recorded).isEmpty }
        guard let sent = Request(sent), let recorded = Request(recorded) else { return false }
        return matches(sent, recorded)
    }

    private func explanation(_ sent: HAR.Request, _ replayed: Set<Int>, _ candidates: [Int]) -> String {
        let used = replayed.filter { fits(sent, entries[$0].request) }
        var text = "No recorded exchange is left for \(sent.line)."
        if !used.isEmpty { text += " It was replayed \(used.count == 1 ? "once" : "\(used.count) times")." }
        if candidates.isEmpty, !used.isEmpty { return text }
        let nearest = (candidates.isEmpty ? Array(entries.indices) : candidates).min { left, right in
            sent.distance(from: entries[left].request) < sent.distance(from: entries[right].request)
        }
        guard let nearest else { return text + " The cassette is empty." }
        let recorded = entries[nearest].request
        text += matching.isOrdered ? " The next one" : " The nearest one"
        text += " is number \(numbers[nearest]), \(recorded.line)"
        let differences = sent.differences(from: recorded).map(\.text)
        return text + (differences.isEmpty ? "." : ". It differs: \(differences.joined(separator: "; ")).")
    }
}

extension Redaction {
    /// Returns the record of a request and its body without secrets.
    func recorded(_ request: Request, body: Data) -> HAR.Request {
        var record = HAR.Request(request)
        if !body.isEmpty {
            record.postData = postData(body, request.headers[.contentType] ?? "", request.headers.contentCodings)
        }
        record.bodySize = Int64(body.count)
        return self.request(record.withFixedBoundary)
    }

    /// Returns a request of any archive without secrets, as the same request that is sent is recorded.
    fileprivate func recorded(_ record: HAR.Request) -> HAR.Request {
        var record = record
        if let post = record.postData, post.encoding != nil {
            let bytes = post.bytes
            // A body of another size than the one that was sent has lost its coding, if it had one.
            let isEncoded = record.bodySize == Int64(bytes.count)
            let codings = isEncoded ? record.headers.fields.contentCodings : []
            if !bytes.isEmpty { record.postData = postData(bytes, post.mimeType, codings) }
        }
        return request(record.withFixedBoundary)
    }

    private func postData(_ body: Data, _ type: String, _ codings: [String]) -> HAR.PostData {
        let shown = self.body(body, contentType: type, codings: codings, decode: HAR.content)
        let (text, encoding) = HAR.text(shown.bytes)
        return HAR.PostData(
            mimeType: type, text: text, encoding: encoding,
            comment: shown.comment(recording: body.count, of: Int64(body.count)))
    }
}

extension HAR.Request {
    /// The request with a fixed boundary in a multipart body, which has a random one, so that bodies can be compared. The
    /// field of the type loses its other parameters.
    fileprivate var withFixedBoundary: HAR.Request {
        guard var post = postData else { return self }
        let type = HeaderParameters(post.mimeType)
        guard type.value.lowercased().utf8.starts(with: "multipart/".utf8), let boundary = type["boundary"],
            !boundary.isEmpty
        else { return self }
        let bytes = post.bytes.replacing(Data("--\(boundary)".utf8), with: Data("--\(Self.boundary)".utf8))
        // That of a compressed body is the one within it.
        guard post.encoding == nil || bytes != post.bytes else { return self }
        post.text = post.encoding == nil ? String(decoding: bytes, as: UTF8.self) : bytes.base64EncodedString()
        post.mimeType = "\(type.value); boundary=\(Self.boundary)"
        var request = self
        request.postData = post
        request.headers = headers.map { pair in
            pair.name.lowercased() == "content-type" ? HAR.Pair(pair.name, post.mimeType) : pair
        }
        return request
    }

    private static let boundary = "recorded-boundary"
}

extension HAR {
    /// Returns the content of bytes in a content coding, of up to 64 MiB; `nil` if they cannot be decoded.
    static func content(_ bytes: [UInt8], coding: String) -> (bytes: [UInt8], isComplete: Bool)? {
        Inflater.content(of: bytes, coding: coding, upTo: 64 << 20)
    }
}

extension HAR.PostData {
    /// The bytes of the body.
    fileprivate var bytes: Data { encoding == nil ? Data(text.utf8) : Data(wrappedBase64: text) ?? Data() }
}

extension Data {
    /// Decodes Base64 with line breaks, as editors and command-line tools write it; `nil` for other text.
    init?(wrappedBase64 text: String) {
        self.init(base64Encoded: String(text.filter { !$0.isWhitespace }))
    }
}

extension HAR.Request {
    /// The method and the URL.
    var line: String { "\(method) \(url)" }

    /// The differences from another request, with a weight.
    func differences(from other: HAR.Request) -> [(text: String, weight: Int)] {
        var differences: [(text: String, weight: Int)] = []
        func compare(_ name: String, _ own: String?, _ others: String?, weight: Int) {
            guard own != others else { return }
            differences.append(("\(name) “\(own ?? "(none)")” instead of “\(others ?? "(none)")”", weight))
        }
        compare("method", method, other.method, weight: 4)
        let (origin, path) = parts
        let (otherOrigin, otherPath) = other.parts
        compare("origin", origin, otherOrigin, weight: 8)
        compare("path", path, otherPath, weight: 4 + Self.distance(path, otherPath))
        // Some browsers decode the names and values of `queryString`.
        let (query, otherQuery) = (Self.query(of: url), Self.query(of: other.url))
        for name in Set((query + otherQuery).map(\.name)).sorted() {
            func values(_ query: [HAR.Pair]) -> String? {
                let values = query.filter { $0.name == name }.map(\.value)
                return values.isEmpty ? nil : values.joined(separator: "&")
            }
            compare("query parameter \(name)", values(query), values(otherQuery), weight: 1)
        }
        // The order of the members of JSON differs between runs, as that of a dictionary does.
        let body = JSONNode.canonical(postData?.text ?? "")
        let otherBody = JSONNode.canonical(other.postData?.text ?? "")
        if body != otherBody {
            let place = zip(body.utf8, otherBody.utf8).prefix { $0 == $1 }.count
            func excerpt(_ text: String) -> String {
                String(decoding: text.utf8.dropFirst(place).prefix(30), as: UTF8.self)
            }
            differences.append(
                ("body from byte \(place) on, “\(excerpt(body))” instead of “\(excerpt(otherBody))”", 2))
        }
        return differences
    }

    func distance(from other: HAR.Request) -> Int { differences(from: other).reduce(0) { $0 + $1.weight } }

    /// The URL up to the path, and the path.
    private var parts: (origin: String, path: String) {
        let rest = url.unicodeScalars.prefix { $0 != "?" && $0 != "#" }
        guard let slashes = rest.firstRange(of: "//".unicodeScalars) else { return ("", String(rest)) }
        let path = rest[slashes.upperBound...].firstIndex { $0 == "/" } ?? rest.endIndex
        return (String(rest[..<path]), path == rest.endIndex ? "/" : String(rest[path...]))
    }

    /// The number of segments that differ.
    private static func distance(_ path: String, _ other: String) -> Int {
        let (own, others) = (path.split(at: "/"), other.split(at: "/"))
        return abs(own.count - others.count) + zip(own, others).count { $0 != $1 }
    }
}

extension Request {
    /// Creates the request of a record, with its body in memory; `nil` if its URL or method is invalid.
    init?(_ record: HAR.Request) {
        guard let url = URL(string: record.url), let method = HTTPRequest.Method(record.method) else { return nil }
        self.init(method: method, url: url)
        headers = record.headers.fields
        if let post = record.postData { body = .bytes(post.bytes) }
    }
}

extension Request {
    /// The exchange that was taken from the cassette for the request already; `nil` if it is to be taken.
    var recordedEntry: HAR.Entry? {
        get { self[RecordedEntry.self] }
        set { self[RecordedEntry.self] = newValue }
    }

    private enum RecordedEntry: RequestAttribute {
        static var defaultValue: HAR.Entry? { nil }
    }
}

extension [HAR.Pair] {
    /// The header fields, without those that are invalid.
    var fields: HTTPFields {
        HTTPFields(
            compactMap { pair in HTTPField.Name(pair.name).map { HTTPField(name: $0, value: pair.value) } })
    }
}

extension MockResponse {
    /// Creates the response of a recorded exchange.
    ///
    /// A client would compare the fields that describe the body with one that is decoded, cut off, or without secrets.
    init(_ entry: HAR.Entry) {
        let content = entry.response.content
        let text = content.text ?? ""
        let body = content.isBase64 ? Data(wrappedBase64: text) ?? Data() : Data(text.utf8)
        var headers = entry.response.headers.fields
        if !body.isEmpty {
            let digests = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"]
            for name in digests.compactMap({ HTTPField.Name($0) }) { headers[name] = nil }
            if headers[.contentLength] != nil, !entry.isPartial { headers[.contentLength] = "\(body.count)" }
        }
        let status = HTTPResponse.Status(code: entry.response.status, reasonPhrase: entry.response.statusText)
        self.init(
            [.head(status, headers)] + (body.isEmpty ? [] : [.chunk(body)])
                + (entry.isPartial ? [.fail(entry.cut)] : []))
    }
}
