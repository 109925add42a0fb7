// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct RepresentationTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let later = "Sun, 06 Nov 1994 08:49:38 GMT"
    private static let modified: HTTPFields = [.lastModified: date, .date: later]
    private static func digest(_ byte: UInt8) -> String {
        ContentDigest(.sha256, Data(repeating: byte, count: 32)).fieldValue
    }

    private static func head(_ headers: HTTPFields, status: Int = 200) throws -> ResponseHead {
        ResponseHead(status: .init(code: status), headers: headers, url: try url("http://a.example/"))
    }

    /// The fields of a response with the whole, those of one with a part, and whether they are of one representation.
    private static let pairs: [(whole: HTTPFields, part: HTTPFields, isSame: Bool)] = [
        ([.eTag: "\"1\""], [.eTag: "\"1\""], true),
        ([.eTag: "\"1\""], [:], true),
        ([.eTag: "\"1\""], [.eTag: "\"2\""], false),
        ([.eTag: "\"1\""], [.eTag: "W/\"1\""], false),
        // Texts that `String` considers equal: composed and decomposed.
        ([.eTag: "\"\u{E9}\""], [.eTag: "\"e\u{301}\""], false),
        ([.eTag: "\"\u{E9}\""], [.eTag: "\"\u{E9}\""], true),
        (modified, [.lastModified: later], false),
        (modified, [.lastModified: date], true),
        ([.contentEncoding: "gzip"], [.contentEncoding: "gzip"], true),
        ([.contentEncoding: "gzip"], [.contentEncoding: "X-GZip"], true),
        ([.contentEncoding: "x-gzip"], [:], true),
        ([.contentEncoding: "gzip"], [.contentEncoding: "br"], false),
        ([.contentEncoding: "gzip"], [.contentEncoding: "identity"], false),
        ([.contentEncoding: "gzip, br"], [.contentEncoding: "br, gzip"], false),
        ([:], [.contentEncoding: "identity"], true),
        ([:], [.contentEncoding: "gzip"], false),
        (repr(1), repr(1), true),
        (repr(1), repr(2), false),
        (repr(1), [:], true),
        // The content of the whole is the representation, and that of a part is not.
        ([.contentDigest: digest(1)], repr(2), false),
        (repr(1), [.contentDigest: digest(2)], true),
        ([.contentLength: "-5"], [:], true),
    ]

    private static func repr(_ byte: UInt8) -> HTTPFields {
        var fields = HTTPFields()
        if let name = HTTPField.Name("Repr-Digest") { fields[name] = digest(byte) }
        return fields
    }

    @Test(arguments: pairs.indices)
    func `a part belongs to the representation unless a field says otherwise`(index: Int) throws {
        let pair = Self.pairs[index]
        let representation = Representation(try Self.head(pair.whole), to: [:])
        let part = try Self.head(pair.part, status: 206)
        #expect(representation.isContradicted(by: part, total: nil) == !pair.isSame)
        #expect(representation.totalBytes == nil)
    }

    @Test func `several Content-Encoding fields are one list`() throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: .contentEncoding, value: "identity"))
        fields.append(HTTPField(name: .contentEncoding, value: "x-gzip, BR ,"))
        #expect(fields.contentCodings == ["gzip", "br"])
        #expect(try Self.head(fields).hasContentCoding)
    }

    @Test(arguments: [
        ("10", 10), ("0", 0), ("-5", nil), ("+5", nil), ("", nil), ("1e3", nil), ("99999999999999999999", nil),
    ])
    func `a length is a decimal number`(text: String, length: Int64?) throws {
        #expect(try Self.head([.contentLength: text]).contentLength == length)
    }

    @Test func `a tag with bytes that are not UTF-8 identifies nothing`() throws {
        #expect(Representation(try Self.head([.eTag: "\"\u{FFFD}\""]), to: [:]).validator == nil)
    }

    /// Fields of a response, those of its request and of a later request, and whether that selects the same.
    private static let selections: [(response: HTTPFields, first: HTTPFields, next: HTTPFields, isSame: Bool)] = [
        (modified, [.accept: "text/csv"], [.accept: "application/json"], false),
        (modified, [.accept: "text/csv"], [.accept: "text/csv"], true),
        (modified, [:], [.acceptLanguage: "de"], false),
        (modified, [:], [.from: "me"], true),
        (modified + [.vary: "From"], [:], [.from: "me"], false),
        (modified, [:], [.acceptEncoding: "identity"], true),
        (modified + [.vary: "Accept-Encoding"], [:], [:], true),
        // It is not known whether the first request had the same value.
        (modified + [.vary: "Accept, Cookie"], [:], [:], false),
        (modified + [.vary: "Authorization"], [.authorization: "a"], [.authorization: "a"], false),
        (modified + [.vary: "*"], [:], [:], false),
        ([.eTag: "\"1\"", .vary: "Cookie"], [:], [:], true),
        (repr(1), [.accept: "text/csv"], [:], false),
        // The server compares tags, which differ between representations.
        ([.eTag: "\"1\""], [.accept: "text/csv"], [.accept: "application/json"], true),
    ]

    @Test(arguments: selections.indices)
    func `a request selects the representation by its fields, unless it has a tag`(index: Int) throws {
        let selection = Self.selections[index]
        let representation = Representation(try Self.head(selection.response), to: selection.first)
        #expect(representation.isSelected(by: selection.next) == selection.isSame)
    }

    @Test func `the values of the fields that select a representation are not stored`() throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        let head = try Self.head(Self.modified + [.vary: "X-Api-Key, From"])
        let representation = Representation(head, to: [key: "secret-1", .from: "secret-2"], sensitive: [key])
        let text = String(decoding: try JSONEncoder().encode(representation), as: UTF8.self)
        #expect(!text.contains("secret"))
        #expect(!representation.isSelected(by: [key: "secret-1", .from: "secret-2"]))
    }

    @Test func `further requests of a download are limited by the bytes received`() {
        var limit = FollowUpLimit()
        var permitted = 0
        while limit.permitsNext(after: 640 << 10) { permitted += 1 }
        #expect(permitted == 30)
    }
}

/// Downloads from servers whose responses do not fit together.
@Suite(.timeLimit(.minutes(5))) struct RepresentationDownloadsTests {
    private let directory: TemporaryDirectory
    private let file: String
    private static let date: HTTPFields = [
        .lastModified: "Sun, 06 Nov 1994 08:49:37 GMT", .date: "Sun, 06 Nov 1994 08:49:38 GMT",
    ]

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    private func session(
        _ transport: MockTransport, limit: Int = 2, configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        SessionManager(
            .on(transport) {
                $0.retryPolicy = RetryPolicy(limit: limit).with { $0.backoff = Backoff(base: .zero) }
                configure(&$0)
            })
    }

    /// A transport that sends the responses in turn, and fails after the last one.
    private static func transport(_ responses: MockResponse...) -> MockTransport {
        let next = Lock(responses[...])
        return MockTransport { _ in next.withLock { $0.popFirst() } ?? .status(.internalServerError) }
    }

    private static func ranges(_ transport: MockTransport) -> [String?] {
        transport.requests.map { $0.request.headers[.range] }
    }

    private static let lost = MockResponse.Step.fail(TransportError(.connectionLost(.beforeResponse)))

    /// A response with the whole that is cut.
    private static func cut(_ text: String, _ headers: HTTPFields) -> MockResponse {
        MockResponse([.head(.ok, headers), .chunk(Data(text.utf8)), lost])
    }

    private static func part(_ text: String, _ range: String, _ headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(
            status: .partialContent, headers: headers + [.contentRange: range], chunks: [Data(text.utf8)])
    }

    private static func end(_ size: Int, _ headers: HTTPFields = [:]) -> MockResponse {
        MockResponse(
            status: .rangeNotSatisfiable, headers: headers + [.contentRange: "bytes */\(size)"],
            chunks: [Data("no".utf8)])
    }

    private static let tag: HTTPFields = [.eTag: "\"1\""]

    @Test func `without a total, parts are requested until the server reports the end`() async throws {
        let transport = Self.transport(
            Self.cut("0123", Self.tag), Self.part("45", "bytes 4-5/*"), Self.part("6", "bytes 6-6/*"), Self.end(7))
        let task = session(transport).download("x", to: .file(file))
        async let events = task.allEvents
        let result = try await task.value
        #expect(result.size == 7)
        #expect(try directory.read("file").text == "0123456")
        #expect(Self.ranges(transport) == [nil, "bytes=4-", "bytes=6-", "bytes=7-"])
        #expect(await !events.contains { $0.contains("of 6") })
    }

    @Test func `a part with more bytes than its range makes the download start over`() async throws {
        let transport = Self.transport(
            Self.cut("01234", Self.tag + [.contentLength: "10"]), Self.part("56789xx", "bytes 5-9/10"),
            .text("0123456789"))
        _ = try await session(transport).download("x", to: .file(file)).value
        #expect(try directory.read("file").text == "0123456789")
        #expect(Self.ranges(transport) == [nil, "bytes=5-", nil])
    }

    @Test func `nothing beyond a range is counted`() async throws {
        let transport = Self.transport(
            Self.cut("01234", Self.tag + [.contentLength: "10"]), Self.part("56789xx", "bytes 5-9/10"))
        let options = DownloadOptions.durable.with { $0.startsOverIfNotResumable = false }
        let error = try await sessionError {
            _ = try await session(transport).download("x", to: .file(file), options: options).value
        }
        #expect(error.resumeFailure == .wrongRange("bytes 5-9/10"))
        #expect(ResumeData.left(at: file)?.offset == 5)
    }

    @Test func `bytes beyond a range do not count if the request for the whole fails`() async throws {
        let transport = MockTransport(
            Self.cut("01234", Self.tag + [.contentLength: "10"]),
            MockResponse(
                status: .partialContent, headers: [.contentRange: "bytes 5-8/10"],
                chunks: [Data("0123".utf8), Data("4".utf8)]),
            .status(.internalServerError), Self.part("56789", "bytes 5-9/10"))
        let session = SessionManager(on: transport)
        for _ in 0..<2 {
            let error = try await sessionError {
                _ = try await session.download("x", to: .file(file), options: .durable).value
            }
            #expect(error.resumeData?.offset == 5)
            #expect(ResumeData.left(at: file)?.offset == 5)
        }
        #expect(Self.ranges(transport) == [nil, "bytes=5-", nil])
        #expect(try await session.download("x", to: .file(file), options: .durable).value.size == 10)
        #expect(try directory.read("file").text == "0123456789")
    }

    @Test func `the digest of an error describes the error`() async throws {
        var digest = HTTPFields()
        digest[try #require(HTTPField.Name("Repr-Digest"))] = try ContentDigest(of: Data("no".utf8)).fieldValue
        let transport = Self.transport(
            Self.cut("0123456789", Self.tag), Self.end(10, digest))
        _ = try await session(transport).download("x", to: .file(file)).value
        #expect(try directory.read("file").text == "0123456789")
    }

    @Test func `a part with another digest of the whole is of another version`() async throws {
        var (first, second) = (HTTPFields(), HTTPFields())
        let name = try #require(HTTPField.Name("Repr-Digest"))
        first[name] = try ContentDigest(of: Data("0123".utf8)).fieldValue
        second[name] = try ContentDigest(of: Data("abcd".utf8)).fieldValue
        let transport = Self.transport(
            Self.cut("01", first), Self.part("cd", "bytes 2-3/4", second),
            MockResponse(headers: second, chunks: [Data("abcd".utf8)]))
        _ = try await session(transport).download("x", to: .file(file)).value
        #expect(try directory.read("file").text == "abcd")
    }

    @Test func `the digest of the content is verified although the content was continued`() async throws {
        let headers = Self.tag + [.contentDigest: try ContentDigest(of: Data("0123".utf8)).fieldValue]
        let transport = Self.transport(Self.cut("0x", headers), Self.part("23", "bytes 2-3/4"))
        let error = try await sessionError {
            _ = try await session(transport).download("x", to: .file(file)).value
        }
        #expect(error.digestFailure != nil)
        #expect(try directory.contents == [])
    }

    @Test(arguments: ["Content-Digest", "Repr-Digest"], [true, false])
    func `digests in trailers are verified`(name: String, isRight: Bool) async throws {
        var trailers = HTTPFields()
        trailers[try #require(HTTPField.Name(name))] =
            try ContentDigest(of: Data((isRight ? "0123" : "x").utf8)).fieldValue
        let api = session(MockTransport(MockResponse(chunks: [Data("0123".utf8)], trailers: trailers)))
        do {
            _ = try await api.download("x", to: .file(file)).value
            #expect(isRight)
        } catch let error as SessionError {
            #expect(!isRight && error.digestFailure != nil)
        }
    }

    @Test func `an unfinished download is not continued by a request for another representation`() async throws {
        let headers = Self.date + [.contentLength: "4"]
        let broken = Self.transport(Self.cut("a,", headers))
        await #expect(throws: SessionError.self) {
            _ = try await session(broken, limit: 0).download(
                "x", to: .file(file), headers: [.accept: "text/csv"], options: .durable
            ).value
        }
        let transport = Self.transport(MockResponse(headers: headers, chunks: [Data("[12]".utf8)]))
        _ = try await session(transport).download(
            "x", to: .file(file), headers: [.accept: "application/json"], options: .durable
        ).value
        #expect(try directory.read("file").text == "[12]")
        #expect(Self.ranges(transport) == [nil])
    }

    @Test(arguments: [
        ("From", "secret-user", "bytes=2-"), ("From", "another", nil),
        ("X-Api-Key, Proxy-Authorization, From", "secret-user", nil),
    ])
    func `a server cannot have secrets stored by naming their fields in Vary`(
        vary: String, user: String, range: String?
    ) async throws {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        let headers = Self.date + [.contentLength: "4", .vary: vary]
        let transport = Self.transport(
            Self.cut("01", headers),
            range == nil ? MockResponse(headers: headers, chunks: [Data("0123".utf8)]) : Self.part("23", "bytes 2-3/4"))
        func api(_ user: String) -> SessionManager {
            session(transport, limit: 0) {
                $0.headers = [.from: user, .proxyAuthorization: "secret-proxy"]
                $0.redirectPolicy.sensitiveHeaders.insert(key)
            }
        }
        let error = try await sessionError {
            _ = try await api("secret-user").download(
                "x", to: .file(file), headers: [key: "secret-key"], options: .durable
            ).value
        }
        let data = try #require(error.resumeData)
        #expect(try !JSONEncoder().encode(data).text.contains("secret"))
        #expect(try !directory.read("file.part.json").text.contains("secret"))
        _ = try await api(user).download("x", to: .file(file), options: .durable).value
        #expect(try directory.read("file").text == "0123")
        #expect(Self.ranges(transport) == [nil, range])
    }

    @Test(arguments: ["gzip", "x-gzip"])
    func `encoded content that is stored as received is continued`(coding: String) async throws {
        let headers = Self.tag + [.contentEncoding: coding, .contentLength: "4"]
        let transport = Self.transport(
            Self.cut("01", headers), Self.part("23", "bytes 2-3/4", [.contentEncoding: coding]))
        _ = try await session(transport).download("x", to: .file(file), options: .durable).value
        #expect(try directory.read("file").text == "0123")
        #expect(Self.ranges(transport) == [nil, "bytes=2-"])
    }

    @Test func `a resumed download is stored as received, also if it starts over`() async throws {
        let broken = Self.transport(Self.cut("01", Self.tag + [.contentLength: "4"]))
        let error = try await sessionError {
            _ = try await session(broken, limit: 0).download("x", to: .file(file)).value
        }
        let data = try #require(error.resumeData)
        let transport = Self.transport(
            Self.part("23", "bytes 2-3/4", [.eTag: "\"2\""]),
            MockResponse(headers: [.contentEncoding: "gzip"], chunks: [Data("zzzz".utf8)]))
        _ = try await session(transport).download(resuming: data).value
        #expect(transport.requests.map { $0.request.headers[.acceptEncoding] } == ["identity", "identity"])
        #expect(transport.requests.allSatisfy { $0.request.options?.decodesContent == false })
    }

    @Test func `a download that is repeated from the start is decoded as at first`() async throws {
        let transport = Self.transport(
            Self.cut("01", Self.tag + [.contentLength: "4"]),
            MockResponse(headers: [.contentEncoding: "gzip"], chunks: [Data("zzzz".utf8)]), .text("abcd"))
        _ = try await session(transport).download("x", to: .file(file)).value
        #expect(transport.requests.map { $0.request.headers[.acceptEncoding] } == [nil, "identity", nil])
        #expect(transport.requests.map { $0.request.options?.decodesContent } == [true, false, true])
        #expect(Self.ranges(transport) == [nil, "bytes=2-", nil])
    }

    @Test(arguments: [true, false])
    func `a body that an interceptor has replaced is not continued`(isAroundExchange: Bool) async throws {
        let headers = Self.tag + [.contentDigest: try ContentDigest(of: Data("1\r\n2\r\n3".utf8)).fieldValue]
        let drop = Intercepting { request, next in
            var response = try await next(request)
            response.body = response.body.transforming { Data($0.filter { $0 != 13 }) }
            return response
        }
        let pass = Intercepting { request, next in
            try await next(request)
        }
        let transport = Self.transport(Self.cut("1\r\n2", headers), Self.part("\n3", "bytes 4-5/6"))
        let api = session(transport) {
            $0.interceptors = isAroundExchange ? [pass] : [pass, drop]
            $0.attemptInterceptors = isAroundExchange ? [drop, pass] : [pass]
        }
        let error = try await sessionError { _ = try await api.download("x", to: .file(file)).value }
        #expect(error.resumeData == nil)
        #expect(Self.ranges(transport) == [nil])
        #expect(try directory.contents == [])
    }

    @Test func `the whole file is the whole file, whatever its status`() async throws {
        let transport = Self.transport(Self.part("0123", "bytes 0-3/4", Self.tag))
        let result = try await session(transport).download("x", to: .file(file)).value
        #expect(result.size == 4)
        #expect(try directory.read("file").text == "0123")
    }

    @Test(arguments: ["01", "01234"])
    func `a body that is not as long as the range of the whole file is an error`(text: String) async throws {
        let transport = Self.transport(Self.part(text, "bytes 0-3/4"))
        let error = try await sessionError { _ = try await session(transport).download("x", to: .file(file)).value }
        #expect(error.resumeFailure == .wrongRange(text.count > 4 ? "bytes 0-3/4" : nil))
        #expect(Self.ranges(transport) == [nil])
        #expect(try directory.contents == [])
    }

    @Test func `the rest of a range of the whole file is requested`() async throws {
        let transport = Self.transport(
            Self.part("01", "bytes 0-3/4", Self.tag), Self.part("23", "bytes 2-3/4", Self.tag))
        let result = try await session(transport).download("x", to: .file(file)).value
        #expect(result.size == 4)
        #expect(try directory.read("file").text == "0123")
        #expect(Self.ranges(transport) == [nil, "bytes=2-"])
    }

    @Test(arguments: [("56", true), ("567", false), ("5", false)])
    func `a file that consists of a range has its length`(text: String, isWhole: Bool) async throws {
        let transport = Self.transport(Self.part(text, "bytes 5-6/10", Self.tag))
        let api = session(transport)
        let request = try api.request(.get, "x", headers: [.range: "bytes=5-6"])
        do {
            let result = try await api.download(request, to: .file(file)).value
            #expect(isWhole && result.size == 2)
        } catch let error as SessionError {
            #expect(error.resumeFailure != nil && !isWhole)
        }
    }

    @Test func `a server that answers each range by the whole file needs two requests`() async throws {
        let transport = MockTransport { request in
            guard request.headers[.range] != nil else { return Self.cut("01", Self.tag + [.contentLength: "4"]) }
            return MockResponse([
                .head(.partialContent, Self.tag + [.contentRange: "bytes 0-3/4"]), .chunk(Data("01".utf8)), Self.lost,
            ])
        }
        let error = try await sessionError {
            _ = try await session(transport, limit: 1).download("x", to: .file(file)).value
        }
        #expect(error.retryHistory.stop == .limit(1))
        #expect(Self.ranges(transport) == [nil, "bytes=2-"])
    }

    @Test func `parts of a byte are not requested for ever`() async throws {
        let transport = MockTransport { request in
            guard let range = request.headers[.range] else { return Self.cut("0", Self.tag + [.contentLength: "5000"]) }
            let start = Int(range.dropFirst("bytes=".count).dropLast()) ?? 0
            return Self.part("0", "bytes \(start)-\(start)/5000")
        }
        let error = try await sessionError { _ = try await session(transport).download("x", to: .file(file)).value }
        #expect(error.resumeFailure == .tooManyParts)
        #expect(error.resumeData?.offset == 22)
        #expect(transport.requests.count == 22)
        error.resumeData?.discard()
    }

    @Test func `all requests of a download are one call with one deadline`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(clock: clock) { request in
            let start = request.headers[.range].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            return MockResponse(
                [
                    .pause(.seconds(1)),
                    .head(
                        start == 0 ? .ok : .partialContent,
                        Self.tag + (start == 0 ? [.contentLength: "100"] : [.contentRange: "bytes \(start)-99/100"])),
                    .chunk(Data("0".utf8)), Self.lost,
                ])
        }
        let api = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy(limit: 100).with {
                ($0.backoff, $0.deadline) = (Backoff(base: .zero), .seconds(3))
            }
        }
        let task = api.download("x", to: .file(file))
        for _ in 0..<3 {
            _ = try await clock.sleepers(count: 1)
            clock.advance(by: .seconds(1))
        }
        let error = try await sessionError { _ = try await task.value }
        #expect(error.retryHistory.stop == .deadline(.seconds(3)))
        #expect(transport.requests.count == 3)
        error.resumeData?.discard()
    }

    @Test func `waits begin anew after progress, which does not draw on the budget`() async throws {
        let clock = ManualClock()
        let transport = MockTransport { request in
            let start = request.headers[.range].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let range = "bytes \(start)-3/4"
            return MockResponse([
                start == 0
                    ? .head(.ok, Self.tag + [.contentLength: "4"]) : .head(.partialContent, [.contentRange: range]),
                .chunk(Data("0".utf8)), start == 3 ? .chunk(Data()) : Self.lost,
            ])
        }
        let api = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy(limit: 9).with {
                $0.backoff = Backoff(base: .seconds(1), isJittered: false)
                $0.budget = RetryPolicy.Budget(capacity: 0, perRequest: 0, perSecond: 0)
            }
        }
        let task = api.download("x", to: .file(file))
        #expect(try await clock.passWaits(3) == [.seconds(1), .seconds(1), .seconds(1)])
        #expect(try await task.value.size == 4)
    }

    @Test func `interceptors see each request of a download`() async throws {
        let seen = Lock<[String]>([])
        func note(_ place: String) -> Intercepting {
            Intercepting { request, next in
                seen.withLock { $0.append("\(place) \(next.attempt) \(request.headers[.range] ?? "whole")") }
                return try await next(request)
            }
        }
        let transport = Self.transport(
            Self.cut("01", Self.tag + [.contentLength: "4"]), Self.part("23", "bytes 2-3/4"))
        let api = session(transport) {
            $0.interceptors = [note("call")]
            $0.attemptInterceptors = [note("exchange")]
        }
        _ = try await api.download("x", to: .file(file)).value
        #expect(
            seen.withLock(\.self) == ["call 1 whole", "exchange 1 whole", "call 2 bytes=2-", "exchange 2 bytes=2-"])
    }

    @Test func `the size of a range is that of the range`() async throws {
        let transport = MockTransport { request in
            .status(.ok, headers: [.contentLength: request.url.path.hasSuffix("b") ? "-5" : "1000"])
        }
        let api = session(transport)
        var tasks: [DownloadTask] = []
        for (path, range) in [("a", "bytes=0-9"), ("a", "bytes=990-"), ("a", "bytes=2000-"), ("b", nil)] {
            var request = try api.request(.get, path)
            request.headers[.range] = range
            tasks.append(api.makeDownloadTask(for: request, to: .file(file)))
        }
        let group = SessionTaskGroup(tasks)
        await api.requestSizes(of: group)
        #expect(group.tasks.map(\.expectedBytes) == [10, 10, nil, nil])
    }
}

extension Data {
    fileprivate var text: String { String(decoding: self, as: UTF8.self) }
}
