// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

extension PieceDigests {
    /// Computes the digests of the pieces of a file.
    init(of file: Data, pieceLength: Int) throws {
        let values = try stride(from: 0, to: file.count, by: pieceLength).map { start in
            try ContentDigest(of: Data(file.dropFirst(start).prefix(pieceLength))).value
        }
        try self.init(.sha256, pieceLength: Int64(pieceLength), totalBytes: Int64(file.count), values: values)
    }
}

@Suite struct PieceChecksTests {
    private static let value = Data(count: 32)
    private static let right = ContentDigest(.sha256, value)
    private static let wrong = ContentDigest(.sha256, Data(repeating: 1, count: 32))

    private func checks(done: [Range<Int64>] = []) throws -> PieceChecks {
        let digests = try PieceDigests(
            .sha256, pieceLength: 10, totalBytes: 25, values: Array(repeating: Self.value, count: 3))
        return PieceChecks(digests, done: ByteRanges(done))
    }

    @Test func `a piece stays verified in later transfers until its bytes are gone or come again`() throws {
        var checks = try checks()
        let all = ByteRanges([0..<25])
        checks.receive(0..<25, from: 0)
        for piece in 0..<3 { #expect(checks.judge(piece, Self.right) == .right) }
        #expect(checks.isComplete)
        checks.begin(ByteRanges([0..<20]))
        #expect(checks.due(in: 0..<25, of: all) == [2])
        checks.receive(5..<10, from: 1)
        #expect(checks.due(in: 0..<25, of: all) == [0, 2])
        // A server may have another number in the next transfer.
        checks.begin(all)
        #expect(checks.judge(0, Self.wrong) == .mixed)
    }

    @Test(
        arguments: [
            (10, 25, 3, true), (10, 25, 2, false), (10, 25, 4, false), (10, 20, 2, true), (10, 20, 3, false),
            (10, 0, 0, true), (10, 0, 1, false), (0, 25, 3, false), (-10, 25, 3, false), (10, -25, 3, false),
            (.max, .max, 1, true), (1, .max, 3, false),
        ] as [(Int64, Int64, Int, Bool)])
    func `digests must fit the size`(length: Int64, total: Int64, count: Int, fits: Bool) {
        let digests = try? PieceDigests(
            .sha256, pieceLength: length, totalBytes: total, values: Array(repeating: Self.value, count: count))
        #expect((digests != nil) == fits)
    }

    @Test func `a digest of another length fits no piece`() {
        let error = #expect(throws: SessionError.self) {
            try PieceDigests(.sha512, pieceLength: 1, totalBytes: 1, values: [Self.value])
        }
        #expect(error?.reason == .invalidRequest("the digests do not fit the pieces"))
    }

    @Test func `each piece has its bytes, and the last one is shorter`() throws {
        let digests = try checks().digests
        #expect((0..<3).map { digests.range(of: $0) } == [0..<10, 10..<20, 20..<25])
        #expect(digests.pieces(in: 0..<10) == 0..<1)
        #expect(digests.pieces(in: 9..<11) == 0..<2)
        #expect(digests.pieces(in: 24..<100) == 2..<3)
        #expect(digests.pieces(in: 25..<100).isEmpty)
        #expect(digests.pieces(in: 5..<5).isEmpty)
        let largest = try PieceDigests(
            .sha256, pieceLength: .max - 1, totalBytes: .max, values: [Self.value, Self.value])
        #expect(largest.range(of: 1) == Int64.max - 1..<Int64.max)
    }

    @Test func `a piece is due when all its bytes are there, across the borders of segments`() throws {
        var checks = try checks()
        #expect(checks.due(in: 0..<9, of: ByteRanges([0..<9])) == [])
        #expect(checks.due(in: 5..<10, of: ByteRanges([0..<10])) == [0])
        #expect(checks.due(in: 5..<25, of: ByteRanges([5..<25])) == [1, 2])
        #expect(checks.judge(1, Self.right) == .right)
        #expect(checks.due(in: 5..<25, of: ByteRanges([5..<25])) == [2])
        #expect(!checks.isComplete)
        _ = checks.judge(0, Self.right)
        _ = checks.judge(2, Self.right)
        #expect(checks.isComplete)
    }

    @Test func `a server that sent all of a wrong piece has lied`() throws {
        var checks = try checks()
        checks.receive(0..<7, from: 2)
        checks.receive(7..<15, from: 2)
        #expect(checks.judge(0, Self.wrong) == .wrong(source: 2))
        checks.receive(0..<10, from: 1)
        #expect(checks.judge(0, Self.right) == .right)
    }

    @Test func `nobody is blamed for a piece of several servers, or of an earlier process`() throws {
        var checks = try checks(done: [12..<13])
        checks.receive(0..<7, from: 1)
        checks.receive(7..<25, from: 2)
        #expect(checks.judge(0, Self.wrong) == .mixed)
        #expect(checks.judge(1, Self.wrong) == .mixed)
        #expect(checks.judge(2, Self.wrong) == .wrong(source: 2))
    }

    @Test func `bytes that were given up count for their server no more, unless others are there`() throws {
        var checks = try checks()
        checks.receive(0..<7, from: 1)
        checks.giveUp(0..<7, from: 1)
        checks.receive(0..<10, from: 2)
        #expect(checks.judge(0, Self.wrong) == .wrong(source: 2))
        checks.receive(7..<10, from: 2)
        checks.receive(0..<4, from: 1)
        checks.giveUp(0..<4, from: 1)
        checks.receive(0..<7, from: 3)
        #expect(checks.judge(0, Self.wrong) == .mixed)
    }

    @Test func `a piece that stays wrong ends the download`() throws {
        var checks = try checks()
        for failure in 1...5 {
            checks.receive(0..<5, from: 1)
            checks.receive(5..<10, from: 2)
            #expect(checks.judge(0, Self.wrong) == (failure < 5 ? .mixed : .hopeless))
        }
    }
}

@Suite struct SegmentPlanPiecesTests {
    @Test(
        arguments: [
            // The division that is nearest to the middle and leaves the minimum on both sides, or else the middle.
            (10, 10, 50), (30, 10, 60), (40, 10, 40), (70, 10, 70), (95, 10, 50), (5, 10, 50), (1_000, 10, 50),
            (.max, 10, 50),
        ] as [(Int64, Int64, Int64)])
    func `segments are divided between pieces`(length: Int64, minimum: Int64, border: Int64) {
        var plan = SegmentPlan(total: 100, minimum: minimum, pieceLength: length)
        #expect(plan.begin(0, at: 0) == true)
        #expect(plan.begin(1) == border..<100)
    }

    @Test func `a wrong piece is requested again`() {
        var plan = SegmentPlan(total: 100, done: ByteRanges([0..<100]), minimum: 10, pieceLength: 40)
        plan.restart(40..<80, isUndivided: false)
        #expect(plan.done.ranges == [0..<40, 80..<100])
        #expect(plan.begin(1) == 40..<80)
        #expect(plan.begin(2) == 60..<80)
    }

    @Test func `an undivided piece is received by one segment, or begun anew three times`() {
        var plan = SegmentPlan(total: 100, done: ByteRanges([0..<100]), minimum: 10, pieceLength: 40)
        plan.restart(40..<80, isUndivided: true)
        for attempt in 1...3 {
            #expect(plan.begin(attempt) == 40..<80)
            #expect(plan.begin(100) == nil)
            _ = plan.receive(30, attempt)
            #expect(plan.done.contains(40..<70))
            #expect(plan.stop(attempt) == 40..<70)
            #expect(!plan.done.contains(40..<41))
        }
        #expect(plan.begin(4) == 40..<80)
        #expect(plan.begin(5) == 60..<80)
        _ = plan.receive(10, 4)
        #expect(plan.stop(4) == nil)
        #expect(plan.done.contains(40..<50))
    }

    @Test func `a response that ends within an undivided piece does not count`() {
        var plan = SegmentPlan(total: 100, done: ByteRanges([0..<100]), minimum: 10, pieceLength: 40)
        plan.restart(40..<80, isUndivided: true)
        #expect(plan.begin(1) == 40..<80)
        plan.limit(1, to: 60)
        #expect(plan.receive(20, 1) == .init(offset: 40, count: 20, end: .whole, givenUp: 40..<60))
        #expect(plan.begin(2) == 40..<80)
        #expect(plan.receive(40, 2) == .init(offset: 40, count: 40, end: .whole))
        #expect(plan.isComplete)
    }

    @Test(arguments: 0..<50) func `ranges agree with a list of positions`(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var (ranges, list) = (ByteRanges(), Array(repeating: false, count: 50))
        for _ in 0..<30 {
            let start = Int.random(in: 0..<50, using: &generator)
            let end = Int.random(in: start...50, using: &generator)
            let isAdded = Bool.random(using: &generator)
            if isAdded { ranges.insert(Int64(start)..<Int64(end)) } else { ranges.remove(Int64(start)..<Int64(end)) }
            for position in start..<end { list[position] = isAdded }
            #expect(ranges.count == list.count { $0 })
            for position in 0..<50 { #expect(ranges.contains(Int64(position)..<Int64(position + 1)) == list[position]) }
            #expect(ranges.contains(Int64(start)..<Int64(end)) == list[start..<end].allSatisfy { $0 })
            #expect(zip(ranges.ranges, ranges.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        }
    }
}

@Suite(.timeLimit(.minutes(5))) struct VerifiedPiecesTests {
    private static let bytes = StubServer.generatedBytes(400_000)
    private static let pace = Script.Pace(bytes: 4_000, every: .milliseconds(1))
    private static let pieceLength = 30_000
    /// The file with a wrong byte in its third piece.
    private static let damaged = damaged(at: 70_000)
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    private static func damaged(at position: Int) -> Data {
        var bytes = bytes
        bytes[position] ^= 1
        return bytes
    }

    private func options(
        _ segments: DownloadSegments, mirrors: [StubServer] = [], isDurable: Bool = false
    ) throws -> DownloadOptions {
        let pieces = try PieceDigests(of: Self.bytes, pieceLength: Self.pieceLength)
        return DownloadOptions().with {
            $0.segments = segments
            $0.isDurable = isDurable
            $0.pieceDigests = pieces
            $0.mirrors = mirrors.map { $0.url("/file") }
            $0.segmentTuning.minimum = 10_000
            $0.segmentTuning.interval = .milliseconds(5)
            $0.flushInterval = 20_000
        }
    }

    private func withServers(_ files: [ServedFile], _ body: ([StubServer]) async throws -> Void) async throws {
        try await StubServer.with { server in
            guard let first = files.first else { return try await body([]) }
            server.serve(first)
            try await withServers(Array(files.dropFirst())) { try await body([server] + $0) }
        }
    }

    private static func served(_ bytes: Data = bytes, tag: String? = "\"1\"") -> ServedFile {
        ServedFile(bytes, entityTag: tag, pace: pace)
    }

    @Test(arguments: [false, true])
    func `one of three mirrors lies in one piece, and is left`(hasWholeDigest: Bool) async throws {
        // The second mirror is asked for the bytes from 90,000 to 210,000. The others wait until its piece is requested
        // from one of them.
        let gate = try ScriptGate()
        let liar = ServedFile(Self.damaged(at: 160_000), entityTag: "\"l\"")
        try await withServers([Self.served(), Self.served(), liar, Self.served()]) { servers in
            for server in [servers[0], servers[1], servers[3]] {
                server.route("/file") { request in
                    if let range = request.headers["Range"] {
                        if range.hasPrefix("bytes=150000-") { gate.open() }
                        return Script([.wait(gate)] + Self.served().script(for: request).actions)
                    }
                    let reply = Reply(
                        status: 200, headers: ["ETag": "\"1\""], body: .bytes(Self.bytes.prefix(20_000)),
                        framing: .contentLength(declared: 400_000))
                    return Script([.reply(reply), .wait(gate), .send(Self.bytes.dropFirst(20_000))])
                }
            }
            var options = try options(4, mirrors: Array(servers.dropFirst()))
            options.segmentTuning.interval = .seconds(60)
            if hasWholeDigest { options.expectedDigest = try ContentDigest(of: Self.bytes) }
            let manager = SessionManager(for: servers[0])
            let value = try await manager.download("file", to: .file(file), options: options).value
            #expect(value.size == 400_000)
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
            #expect(servers[2].activity.requests.map { $0.headers["Range"] } == ["bytes=90000-209999"])
        }
    }

    @Test func `the piece of a lying server is requested from a mirror, and what follows`() async throws {
        try await withServers([Self.served(Self.damaged), Self.served()]) { servers in
            let manager = SessionManager(for: servers[0])
            let options = try options(1, mirrors: [servers[1]])
            _ = try await manager.download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
            // The server is left at the wrong piece, and not asked again.
            #expect(servers[0].activity.requests.count == 1)
            let ranges = servers[1].activity.requests.map { $0.headers["Range"] ?? "" }
            #expect(ranges.first?.hasPrefix("bytes=60000-") == true)
        }
    }

    @Test func `a file with a wrong piece never appears, and its other pieces stay`() async throws {
        try await withServers([Self.served(Self.damaged)]) { servers in
            let manager = SessionManager(for: servers[0])
            let options = try options(4, isDurable: true)
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: options).value
            }
            let pieces = try #require(options.pieceDigests)
            guard case .digest(let expected, let found, _, _) = error.cause else {
                Issue.record("\(error)")
                return
            }
            #expect(expected.value == pieces.values[2])
            #expect(found.value != pieces.values[2])
            #expect(!FileManager.default.fileExists(atPath: file))
            // A server with the right bytes is asked for those that are missing.
            let data = try #require(error.resumeData)
            let left = ByteRanges([0..<data.offset] + (data.parts?.ranges ?? []))
            #expect(!left.contains(60_000..<90_000) && left.count > 0)
            servers[0].serve(Self.served())
            _ = try await manager.download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test(arguments: [
        ServedFile(bytes, hasRanges: false), ServedFile(bytes, entityTag: nil, hasRanges: false),
        ServedFile(bytes, headers: ["Accept-Ranges": "none"], hasRanges: false),
    ])
    func `pieces are verified without ranges, too`(served: ServedFile) async throws {
        var damaged = served
        damaged.bytes = Self.damaged
        try await withServers([served, damaged]) { servers in
            for segments in [1, 4] {
                let options = try options(.count(segments))
                _ = try await SessionManager(for: servers[0])
                    .download("file", to: .file(file), options: options).value
                #expect(try directory.read("file") == Self.bytes)
                try FileManager.default.removeItem(atPath: file)
                let error = try await sessionError {
                    _ = try await SessionManager(for: servers[1])
                        .download("file", to: .file(file), options: options.with { $0.keepsPartialFile = false }).value
                }
                guard case .digest = error.cause else {
                    Issue.record("\(error)")
                    return
                }
                #expect(try directory.contents == [])
            }
        }
    }

    @Test(arguments: [nil, "gzip"]) func `pieces of a body of unknown size are verified at the end`(
        coding: String?
    ) async throws {
        try await StubServer.with { server in
            for (bytes, isRight) in [
                (Self.bytes, true), (Self.damaged, false), (Self.bytes + Data([0]), false),
                (Self.bytes.dropLast(), false),
            ] {
                var fields: HeaderPairs = ["ETag": "\"1\""]
                if let coding { fields.append("Content-Encoding", coding) }
                let reply = Reply(
                    status: 200, headers: fields, body: .bytes(Data(bytes)), framing: .chunked(size: 50_000))
                server.route("/file") { _ in Script([.reply(reply)]) }
                let task = SessionManager(for: server).download("file", to: .file(file), options: try options(4))
                if isRight {
                    _ = try await task.value
                    #expect(try directory.read("file") == Self.bytes)
                    try FileManager.default.removeItem(atPath: file)
                } else {
                    await #expect(throws: SessionError.self) { try await task.value }
                    #expect(!FileManager.default.fileExists(atPath: file))
                    task.resumeData?.discard()
                }
            }
        }
    }

    @Test func `a wrong piece of a body of unknown size is requested from a mirror`() async throws {
        try await withServers([Self.served(), Self.served()]) { servers in
            let reply = Reply(
                status: 200,
                headers: ["ETag": "\"1\"", "Repr-Digest": "sha-256=:\(Data(count: 32).base64EncodedString()):"],
                body: .bytes(Self.damaged), framing: .chunked(size: 10_000))
            servers[0].route("/file", Script([.reply(reply)]))
            let options = try options(1, mirrors: [servers[1]])
            _ = try await SessionManager(for: servers[0]).download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(servers[0].activity.requests.count == 1)
        }
    }

    @Test func `a piece that is right by now is not the reason for a failure`() async throws {
        try await withServers([Self.served(Self.damaged), Self.served()]) { servers in
            // The mirror sends the right piece, and neither server anything after that.
            for (server, file) in [(servers[0], Self.served(Self.damaged)), (servers[1], Self.cut(after: 60_000))] {
                let isFirst = Atomic(true)
                server.route("/file") { request in
                    isFirst.exchange(false, ordering: .relaxed) ? file.script(for: request) : Script([.end(.reset)])
                }
            }
            let options = try options(1, mirrors: [servers[1]])
            let error = try await sessionError {
                _ = try await SessionManager(for: servers[0]).download("file", to: .file(file), options: options).value
            }
            #expect(error.digestFailure == nil)
            #expect(error.context?.errno == ECONNRESET)
        }
    }

    private static func cut(after count: Int) -> ServedFile {
        var file = served()
        file.interruption = .close(after: count)
        return file
    }

    @Test func `a server with a file of another size is left at once`() async throws {
        let other = Self.served(Self.bytes + Data("more".utf8))
        try await withServers([other, Self.served()]) { servers in
            let manager = SessionManager(for: servers[0])
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: options(4)).value
            }
            guard case .size(expected: 400_000, found: 400_004, _) = error.cause else {
                Issue.record("\(error)")
                return
            }
            #expect(try directory.contents == [])
            // A mirror takes its place.
            _ = try await manager.download("file", to: .file(file), options: options(1, mirrors: [servers[1]])).value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test(arguments: [404, 503, nil]) func `a mirror takes the place of a server that fails at once`(
        status: Int?
    ) async throws {
        try await withServers([Self.served(), Self.served(), Self.served()]) { servers in
            for server in servers.prefix(2) {
                server.route("/file") { _ in status.map { .status($0) } ?? Script([.end(.closeWithoutNotify)]) }
            }
            let manager = SessionManager(for: servers[0]) { $0.retryPolicy = .none }
            let request = Request(url: servers[0].url("/file"), headers: [.authorization: "secret"])
            for segments in [1, 4] {
                let options = try options(.count(segments), mirrors: Array(servers.dropFirst()))
                _ = try await manager.download(request, to: .file(file), options: options).value
                #expect(try directory.read("file") == Self.bytes)
            }
            #expect(servers[2].activity.requests.allSatisfy { $0.headers["Authorization"] == nil })
        }
    }

    @Test func `mirrors that were asked in vain have sent no bytes`() async throws {
        let course = Lock(0)
        let lost = TransportError(.connectionLost(.inBody(received: 45_000, expected: 400_000)))
        let transport = MockTransport { request in
            switch course.withLock(\.self) {
            case 0 where request.headers[.range] == nil:
                let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\""]
                return MockResponse([.head(.ok, fields), .chunk(Self.bytes.prefix(45_000)), .fail(lost)])
            case 0, 1: return .failure(TransportError(.cannotConnect(.refused)))
            default:
                guard request.headers[.range] == "bytes=45000-", request.headers[.ifRange] == "\"1\"" else {
                    return .status(.internalServerError)
                }
                let fields: HTTPFields = [.contentRange: "bytes 45000-399999/400000", .eTag: "\"1\""]
                return MockResponse(status: .partialContent, headers: fields, chunks: [Self.bytes.dropFirst(45_000)])
            }
        }
        let manager = SessionManager(on: transport)
        var options = try options(1, isDurable: true)
        for mirrors in [[], ["http://b.example/file"]] {
            options.mirrors = try mirrors.map { try url($0) }
            let error = try await sessionError { [options] in
                _ = try await manager.download("file", to: .file(file), options: options).value
            }
            #expect(error.resumeData == ResumeData.left(at: file))
            course.withLock { $0 += 1 }
        }
        _ = try await manager.download("file", to: .file(file), options: .durable).value
        #expect(try directory.read("file") == Self.bytes)
        #expect(transport.requests.map { $0.request.url.host() }.suffix(3) == ["a.example", "b.example", "a.example"])
    }

    @Test(arguments: [1, 4])
    func `a wrong piece of a server that states to send no ranges is requested from a mirror`(count: Int) async throws {
        let first = ServedFile(Self.damaged, headers: ["Accept-Ranges": "none"], hasRanges: false, pace: Self.pace)
        try await withServers([first, Self.served()]) { servers in
            let options = try options(.count(count), mirrors: [servers[1]])
            _ = try await SessionManager(for: servers[0]).download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(servers[0].activity.requests.count == 1)
            // Whatever the number of segments, it is the first: the only response of the server is not divided.
            let range = try #require(servers[1].activity.requests.first?.headers["Range"])
            #expect(range.hasPrefix("bytes=60000-"))
        }
    }

    @Test func `a mirror of the first origin receives its secrets, also after another one`() async throws {
        let transport = MockTransport { request in
            guard request.url.path == "/2" else { return .status(.notFound) }
            return MockResponse(headers: [.contentLength: "400000", .eTag: "\"1\""], chunks: [Self.bytes])
        }
        let request = Request(url: try url("http://a.example/1"), headers: [.authorization: "secret"])
        var options = try options(1)
        options.mirrors = try ["http://b.example/1", "http://a.example/2"].map { try url($0) }
        _ = try await SessionManager(on: transport).download(request, to: .file(file), options: options).value
        #expect(try directory.read("file") == Self.bytes)
        let sent = transport.requests.map(\.request)
        #expect(sent.map(\.url.absoluteString) == ["http://a.example/1", "http://b.example/1", "http://a.example/2"])
        #expect(sent.map { $0.headers[.authorization] } == ["secret", nil, "secret"])
    }

    @Test func `a device takes no pieces, whose bytes could not be read again`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        let error = try await sessionError {
            _ = try await manager.download("http://a.example/file", to: "/dev/null", options: options(1)).value
        }
        #expect(error.reason == .invalidRequest("pieceDigests require a regular file"))
    }

    // MARK: Durability

    /// Leaves a durable download that was interrupted in its segments.
    private func breakOff(_ server: StubServer, _ options: DownloadOptions) async throws -> ResumeData {
        server.serve(ServedFile(Self.bytes, interruption: .close(after: 10_000), pace: Self.pace))
        let error = try await sessionError {
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: options).value
        }
        return try #require(error.resumeData)
    }

    @Test(arguments: ["\"1\"", nil])
    func `pieces that a killed process has left are verified, and wrong ones requested again`(
        tag: String?
    ) async throws {
        try await StubServer.with { server in
            let options = try options(4, isDurable: true)
            let data = try await breakOff(server, options)
            #expect(data.offset > 30_000)
            // The bytes of a lying mirror, or of a disk that lies.
            var partial = try directory.read("file.part")
            partial[10_000] ^= 1
            _ = try directory.write(partial, to: "file.part")
            server.serve(Self.served(tag: tag))
            let before = server.activity.requests.count
            let value = try await SessionManager(for: server)
                .download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
            // The first piece is the beginning of the whole, and the others stay.
            #expect(server.activity.requests[before].headers["Range"] == nil)
            #expect(value.response.metrics.responseBodyBytes <= 400_000 - data.completedBytes + 30_000)
        }
    }

    @Test func `the pieces of an earlier download are verified before a request is sent`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 100_000, expected: 400_000)))
        let isDown = Lock(true)
        let transport = MockTransport { request in
            guard !isDown.withLock(\.self), let range = request.headers[.range] else {
                if request.headers[.range] != nil { return .failure(lost) }
                let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\""]
                return MockResponse([.head(.ok, fields), .chunk(Self.bytes.prefix(100_000)), .fail(lost)])
            }
            let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            let last = ends.count == 2 ? ends[1] : 399_999
            let fields: HTTPFields = [.contentRange: "bytes \(ends[0])-\(last)/400000"]
            return MockResponse(status: .partialContent, headers: fields, chunks: [Self.bytes[ends[0]...last]])
        }
        let manager = SessionManager(on: transport)
        let options = try options(1)
        let error = try await sessionError {
            _ = try await manager.download("file", to: .file(file), options: options).value
        }
        let data = try #require(error.resumeData)
        #expect(data.offset == 100_000)
        try Self.damaged.prefix(100_000).write(to: URL(filePath: data.partialFile))
        isDown.withLock { $0 = false }
        let before = transport.requests.count
        _ = try await manager.download(resuming: data, options: options).value
        #expect(try directory.read("file") == Self.bytes)
        #expect(transport.requests[before].request.headers[.range] == "bytes=60000-")
    }

    @Test func `bytes of mirrors that stay after a whole response still need the digests of their pieces`() async throws
    {
        try await withServers([Self.served(), Self.served()]) { servers in
            var options = try options(4, mirrors: [servers[1]], isDurable: true)
            servers[1].serve(ServedFile(Self.bytes, interruption: .close(after: 1_000), pace: Self.pace))
            #expect(try await breakOff(servers[0], options).parts != nil)
            servers[0].serve(ServedFile(Self.bytes, hasRanges: false, interruption: .close(after: 10_000)))
            (options.mirrors, options.segments) = ([], 1)
            let task = SessionManager(for: servers[0]).download("file", to: .file(file), options: options)
            let data = try #require(try await sessionError { _ = try await task.value }.resumeData)
            #expect(data.parts != nil)
            #expect(data.hasMirrorBytes == true)
            #expect(ResumeData.left(at: file) == data)
        }
    }

    @Test func `bytes of mirrors are not continued without the digests of their pieces`() async throws {
        try await withServers([Self.served(), Self.served()]) { servers in
            let options = try options(4, mirrors: [servers[1]], isDurable: true)
            servers[1].serve(ServedFile(Self.bytes, interruption: .close(after: 1_000), pace: Self.pace))
            let data = try await breakOff(servers[0], options)
            #expect(data.hasMirrorBytes == true)
            #expect(data.completedBytes > 0)
            for digests in [options.pieceDigests, nil] {
                servers[0].serve(Self.served())
                let next = options.with {
                    $0.mirrors = []
                    $0.segments = 1
                    $0.pieceDigests = digests
                }
                let before = servers[0].activity.requests.count
                let task = SessionManager(for: servers[0]).download("file", to: .file(file), options: next)
                _ = try await task.value
                #expect(try directory.read("file") == Self.bytes)
                let first = servers[0].activity.requests.dropFirst(before).first
                #expect((first?.headers["Range"] == nil) == (digests == nil))
                guard digests != nil else { break }
                _ = try await breakOff(servers[0], options)
            }
        }
    }
}
