// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import Synchronization
import TestSupport
import Testing

/// Counts calls.
private final class Counter: Sendable {
    private let count = Atomic(0)

    /// The number of calls before this one.
    func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
}

@Suite(.timeLimit(.minutes(5))) struct SegmentedDownloadsTests {
    private static let bytes = StubServer.generatedBytes(400_000)
    /// About 100 ms for the whole.
    private static let pace = Script.Pace(bytes: 4_000, every: .milliseconds(1))
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = "\(directory.path)/file"
    }

    private static func options(_ segments: DownloadSegments = 4, isDurable: Bool = false) -> DownloadOptions {
        DownloadOptions().with {
            $0.segments = segments
            $0.isDurable = isDurable
            $0.segmentTuning.minimum = 10_000
            $0.flushInterval = 20_000
        }
    }

    /// Requests that a server received, with the first and last position of each range.
    private static func ranges(_ server: StubServer) -> [ClosedRange<Int64>] {
        server.activity.requests.compactMap { request in
            let ends = request.headers["Range"]?.dropFirst("bytes=".count).split(separator: "-").compactMap {
                Int64($0)
            }
            guard let ends, ends.count == 2, ends[0] <= ends[1] else { return nil }
            return ends[0]...ends[1]
        }
    }

    @Test func `segments are received over several connections, and are one file with one progress`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, pace: Self.pace))
            let manager = SessionManager(for: server)
            var options = Self.options()
            options.expectedDigest = try ContentDigest(of: Self.bytes)
            let task = manager.download("file", to: .file(file), options: options)
            var last: Int64 = 0
            for await progress in task.progress {
                #expect(progress.completedBytes >= last)
                #expect(progress.totalBytes == 400_000)
                last = progress.completedBytes
            }
            let value = try await task.value
            #expect(last == 400_000)
            #expect(value.size == 400_000)
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
            #expect(Set(Self.ranges(server).prefix(3).map(\.lowerBound)) == [100_000, 200_000, 300_000])
            #expect(server.activity.requests.dropFirst().allSatisfy { $0.headers["If-Range"] == "\"1\"" })
            #expect(server.activity.requests.allSatisfy { $0.headers["Accept-Encoding"] == "identity" })
            #expect(value.response.metrics.segmentHistory.map(\.count) == [4])
            #expect(value.response.metrics.responseBodyBytes == 400_000)
        }
    }

    @Test func `the segments have the time that the retry policy leaves for the download`() async throws {
        let clock = ManualClock()
        let transport = MockTransport(clock: clock) { request in
            guard request.headers[.range] == nil else { return .hang }
            return MockResponse([
                .pause(.seconds(8)), .head(.ok, [.contentLength: "400000", .eTag: "\"1\""]), .hang,
            ])
        }
        let manager = SessionManager(on: transport) {
            $0.clock = clock
            $0.retryPolicy = RetryPolicy().with { $0.deadline = .seconds(10) }
        }
        let task = manager.download("file", to: .file(file), options: Self.options(2))
        #expect(try await clock.passWaits(1) == [.seconds(8)])
        let requests = try await transport.requests(count: 2)
        #expect(requests.map { $0.request.options?.timeouts.total } == [.seconds(10), .seconds(2)])
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `there are never more segments than connections to the host`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, pace: Self.pace))
            let manager = SessionManager(for: server) { $0.connectionLimits.maximumConnectionsPerHost = 2 }
            let value = try await manager.download("file", to: .file(file), options: Self.options(8)).value
            #expect(value.response.metrics.segmentHistory.map(\.count) == [2])
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    struct Alone: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var file: ServedFile
    }

    @Test(arguments: [
        Alone(
            testDescription: "Accept-Ranges: none",
            file: ServedFile(bytes, headers: ["Accept-Ranges": "none"], hasRanges: false, pace: pace)),
        Alone(
            testDescription: "a coding",
            file: ServedFile(bytes, headers: ["Content-Encoding": "gzip"], pace: pace)),
        Alone(testDescription: "no validator", file: ServedFile(bytes, entityTag: nil, pace: pace)),
        Alone(
            testDescription: "a weak validator", file: ServedFile(bytes, entityTag: "W/\"1\"", pace: pace)),
    ])
    func `without ranges the first request brings everything`(_ row: Alone) async throws {
        try await StubServer.with { server in
            server.serve(row.file)
            let value = try await SessionManager(for: server)
                .download("file", to: .file(file), options: Self.options(isDurable: true)).value
            #expect(value.response.statusCode == 200)
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.activity.requests.count == 1)
        }
    }

    @Test func `a length beside a transfer coding is not the size of the file`() async throws {
        try await StubServer.with { server in
            let headers: HeaderPairs = ["ETag": "\"1\"", "Content-Length": "200000"]
            server.route("/file", .reply(Reply(headers: headers, body: .bytes(Self.bytes), framing: .chunked)))
            let value = try await SessionManager(for: server)
                .download("file", to: .file(file), options: Self.options()).value
            #expect(value.size == 400_000)
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `the first request goes on if the server sends no ranges`() async throws {
        let gate = try ScriptGate()
        try await StubServer.with { server in
            server.route("/file") { request in
                guard request.headers["Range"] == nil else {
                    return ServedFile(Self.bytes, hasRanges: false).script(for: request)
                }
                let beginning = Reply(
                    status: 200, headers: ["ETag": "\"1\""], body: .bytes(Self.bytes.prefix(1_000)),
                    framing: .contentLength(declared: 400_000))
                return Script([.reply(beginning), .wait(gate), .send(Self.bytes.dropFirst(1_000))])
            }
            let task = SessionManager(for: server).download("file", to: .file(file), options: Self.options(4))
            try await eventually { server.activity.requests.count == 4 }
            // The unread responses to the others have been closed.
            try await server.connections(open: 1)
            gate.open()
            #expect(try await task.value.response.statusCode == 200)
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.activity.requests.count == 4)
        }
    }

    @Test func `segments that wait for a connection are not requested again and again`() async throws {
        let clock = ManualClock()
        let gates = try (1..<40).map { _ in try ScriptGate() }
        let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\""]
        let transport = MockTransport { request in
            guard request.headers[.range] == nil else { return MockResponse([.hang]) }
            let chunks = gates.enumerated().flatMap { number, gate in
                [.chunk(Self.bytes[number * 10_000..<(number + 1) * 10_000]), .wait(gate)] as [MockResponse.Step]
            }
            return MockResponse([.head(.ok, fields)] + chunks + [.chunk(Self.bytes.suffix(10_000))])
        }
        let manager = SessionManager(on: transport) { $0.clock = clock }
        async let response = manager.download("file", to: .file(file), options: Self.options(4)).value
        _ = try await transport.requests(count: 4)
        for (number, gate) in gates.enumerated() {
            try await eventually {
                try directory.contents.contains { try directory.read($0).count == (number + 1) * 10_000 }
            }
            _ = try await clock.passWaits(1)
            gate.open()
        }
        _ = try await response
        #expect(try directory.read("file") == Self.bytes)
        #expect(transport.requests.count == 4)
    }

    struct Hostile: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// The response to a request for a range.
        var respond: @Sendable (_ first: Int, _ last: Int) -> Script
    }

    private static func reply(
        _ status: Int, _ range: String?, _ body: Data, tag: String = "\"1\"", declared: Int? = nil
    ) -> Script {
        var fields: HeaderPairs = ["ETag": tag]
        if let range { fields.append("Content-Range", range) }
        let reply = Reply(
            status: status, headers: fields, body: .bytes(body),
            framing: .contentLength(declared: Int64(declared ?? body.count)))
        return Script([.reply(reply)] + (declared == nil ? [] : [.end(.closeWithoutNotify)]))
    }

    @Test(arguments: [
        Hostile(testDescription: "another range, honestly") { first, last in
            reply(206, "bytes 0-\(last - first)/400000", bytes.prefix(last - first + 1))
        },
        Hostile(testDescription: "another size") { first, last in
            reply(206, "bytes \(first)-\(last)/400001", bytes[first...last])
        },
        Hostile(testDescription: "no range in a 206") { first, last in reply(206, nil, bytes[first...last]) },
        Hostile(testDescription: "shorter ranges") { first, last in
            let end = min(last, first + 29_999)
            return reply(206, "bytes \(first)-\(end)/400000", bytes[first...end])
        },
        Hostile(testDescription: "longer ranges") { first, last in
            reply(206, "bytes \(first)-399999/400000", bytes[first...])
        },
        Hostile(testDescription: "more bytes than the range") { first, last in
            reply(206, "bytes \(first)-\(last)/400000", bytes[first...last] + Data(repeating: 0, count: 70_000))
        },
        Hostile(testDescription: "ends early") { first, last in
            reply(
                206, "bytes \(first)-\(last)/400000", bytes[first...last].prefix(40_000), declared: last - first + 1)
        },
        Hostile(testDescription: "ends at once") { first, last in
            reply(206, "bytes \(first)-\(last)/400000", Data(), declared: last - first + 1)
        },
        Hostile(testDescription: "not satisfiable") { first, last in reply(416, "bytes */400000", Data()) },
        Hostile(testDescription: "too many requests") { first, last in reply(429, nil, Data("Slower!".utf8)) },
        Hostile(testDescription: "another version, always") { first, last in
            reply(206, "bytes \(first)-\(last)/400000", Data(repeating: 0, count: last - first + 1), tag: "\"2\"")
        },
        Hostile(testDescription: "the whole of another version") { first, last in
            reply(200, nil, Data(repeating: 0, count: 400_000), tag: "\"2\"")
        },
        Hostile(testDescription: "closes the connection") { _, _ in Script([.end(.closeWithoutNotify)]) },
    ])
    func `a server that lies about ranges cannot corrupt the file`(_ row: Hostile) async throws {
        try await StubServer.with { server in
            let served = ServedFile(Self.bytes, pace: Self.pace)
            server.route("/file") { request in
                let ends = request.headers["Range"]?.dropFirst("bytes=".count).split(separator: "-").compactMap {
                    Int($0)
                }
                guard let ends, ends.count == 2 else { return served.script(for: request) }
                return row.respond(ends[0], ends[1])
            }
            for isDurable in [false, true] {
                _ = try await SessionManager(for: server)
                    .download("file", to: .file(file), options: Self.options(isDurable: isDurable)).value
                #expect(try directory.read("file") == Self.bytes)
                #expect(try directory.contents == ["file"])
            }
        }
    }

    @Test func `a file that changes half way starts over once`() async throws {
        try await StubServer.with { server in
            let other = Data(Self.bytes.reversed())
            let (old, new) = (
                ServedFile(Self.bytes, pace: Self.pace), ServedFile(other, entityTag: "\"2\"", pace: Self.pace)
            )
            let count = Counter()
            // The first response does not bring the bytes of the others.
            let gate = try ScriptGate()
            server.route("/file") { request in
                switch count.next() {
                case 0:
                    let beginning = Reply(
                        status: 200, headers: ["ETag": "\"1\""], body: .bytes(Self.bytes.prefix(1_000)),
                        framing: .contentLength(declared: 400_000))
                    return Script([.reply(beginning), .wait(gate)])
                case 1, 2: return old.script(for: request)
                default: return new.script(for: request)
                }
            }
            let task = SessionManager(for: server).download("file", to: .file(file), options: Self.options())
            _ = try await task.value
            gate.open()
            #expect(try directory.read("file") == other)
            #expect(server.activity.requests.count { $0.headers["Range"] == nil } == 2)
        }
    }

    @Test func `a connection that stalls is left`() async throws {
        try await StubServer.with { server in
            let served = ServedFile(Self.bytes, pace: Self.pace)
            let count = Counter()
            server.route("/file") { request in
                var served = served
                if count.next() == 2 { served.interruption = .hang(after: 1_000) }
                return served.script(for: request)
            }
            var options = Self.options()
            options.segmentTuning.interval = .milliseconds(5)
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `a connection without a response costs the others nothing`() async throws {
        try await StubServer.with { server in
            let served = ServedFile(Self.bytes, pace: Self.pace)
            let count = Counter()
            server.route("/file") { request in count.next() == 2 ? .hang : served.script(for: request) }
            var options = Self.options()
            options.segmentTuning.interval = .milliseconds(5)
            _ = try await SessionManager(for: server).download("file", to: .file(file), options: options).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.activity.requests.count < 20)
        }
    }

    @Test func `a server without ranges is not left if it becomes slow`() async throws {
        let clock = ManualClock()
        let (answer, end) = (try ScriptGate(), try ScriptGate())
        let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\""]
        let transport = MockTransport { request in
            guard request.headers[.range] == nil else {
                return MockResponse([.wait(answer), .head(.ok, fields), .hang])
            }
            let (first, last) = (Self.bytes.prefix(100_000), Self.bytes.dropFirst(100_000))
            return MockResponse([.head(.ok, fields), .chunk(first), .wait(end), .chunk(last)])
        }
        let manager = SessionManager(on: transport) { $0.clock = clock }
        let task = manager.download("file", to: .file(file), options: Self.options(2))
        _ = try await transport.requests(count: 2)
        try await eventually { try directory.contents.contains { try directory.read($0).count == 100_000 } }
        // The usual speed is that of two segments.
        _ = try await clock.passWaits(1)
        answer.open()
        for await event in task.events {
            if case .exchange(_, .finished) = event { break }
        }
        _ = try await clock.passWaits(30)
        end.open()
        #expect(try await task.value.response.statusCode == 200)
        #expect(try directory.read("file") == Self.bytes)
        #expect(transport.requests.count == 2)
    }

    @Test func `automatic segments begin with one, and become more`() async throws {
        let clock = ManualClock()
        let end = try ScriptGate()
        let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\"", .acceptRanges: "bytes"]
        let transport = MockTransport { request in
            guard let range = request.headers[.range] else {
                let (first, last) = (Self.bytes.prefix(100_000), Self.bytes.dropFirst(100_000))
                return MockResponse([.head(.ok, fields), .chunk(first), .wait(end), .chunk(last)])
            }
            let first = try #require(Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }))
            let part: HTTPFields = [
                .contentRange: "bytes \(first)-399999/400000", .contentLength: "\(400_000 - first)", .eTag: "\"1\"",
            ]
            return MockResponse([.head(.partialContent, part), .chunk(Self.bytes.dropFirst(first))])
        }
        let manager = SessionManager(on: transport) { $0.clock = clock }
        let task = manager.download("file", to: .file(file), options: Self.options(.automatic))
        try await eventually { try directory.contents.contains { try directory.read($0).count == 100_000 } }
        // The first measurement is ignored, because the segment has just begun.
        _ = try await clock.passWaits(2)
        _ = try await transport.requests(count: 2)
        end.open()
        let value = try await task.value
        #expect(try directory.read("file") == Self.bytes)
        let history = value.response.metrics.segmentHistory
        #expect(history.first?.count == 1)
        #expect(history.dropFirst().first?.count == 2)
        #expect(history.dropFirst().allSatisfy { $0.bytesPerSecond != nil })
    }

    // MARK: Durability

    /// Leaves a durable download that was interrupted in its segments.
    private func breakOff(_ server: StubServer, after count: Int = 10_000) async throws -> ResumeData {
        server.serve(ServedFile(Self.bytes, interruption: .close(after: count), pace: Self.pace))
        let task = SessionManager(for: server).download("file", to: .file(file), options: Self.options(isDurable: true))
        let error = try await sessionError { _ = try await task.value }
        let data = try #require(error.resumeData)
        #expect(data.parts?.isEmpty == false)
        #expect(ResumeData.left(at: file) == data)
        return data
    }

    @Test(arguments: [1, 4]) func `the record has the bytes of each segment, and the next download the rest`(
        segments: Int
    ) async throws {
        try await StubServer.with { server in
            let data = try await breakOff(server)
            let partial = try directory.read("file.part")
            for range in [0..<data.offset] + (data.parts?.ranges ?? []) {
                let range = Int(range.lowerBound)..<Int(range.upperBound)
                #expect(partial[range] == Self.bytes[range])
            }
            server.serve(ServedFile(Self.bytes, pace: Self.pace))
            let before = server.activity.requests.count
            var options = Self.options(.count(segments), isDurable: true)
            options.segments = .count(segments)
            let task = SessionManager(for: server).download("file", to: .file(file), options: options)
            var continued: Int64?
            for await event in task.events {
                if case .continued(let offset, let total) = event {
                    #expect(total == 400_000)
                    continued = continued ?? offset
                }
            }
            _ = try await task.value
            #expect(continued == data.completedBytes)
            #expect(try directory.read("file") == Self.bytes)
            #expect(try directory.contents == ["file"])
            // No byte that was there was requested again, except by the open-ended first request.
            let requested = ByteRanges(
                server.activity.requests.dropFirst(before + 1).compactMap { request in
                    let ends = request.headers["Range"]?.dropFirst("bytes=".count).split(separator: "-")
                        .compactMap { Int64($0) }
                    return ends.flatMap { $0.count == 2 ? $0[0]..<$0[1] + 1 : nil }
                })
            for part in data.parts?.ranges ?? [] { #expect(requested.within(part).isEmpty) }
        }
    }

    @Test func `a new URL continues the segments`() async throws {
        try await StubServer.with { server in
            let data = try await breakOff(server)
            server.serve(ServedFile(Self.bytes, pace: Self.pace), at: "/new")
            let task = SessionManager(for: server).download(
                resuming: data, with: Request(url: server.url("/new")), options: Self.options(isDurable: true))
            _ = try await task.value
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.activity.requests.last?.target == "/new")
        }
    }

    /// As of several servers behind one name, of which some have the new version already.
    @Test(arguments: [true, false])
    func `a file that changes and changes back has no bytes of the version between`(isDurable: Bool) async throws {
        try await StubServer.with { server in
            let data = try await breakOff(server)
            let new = ServedFile(Data(Self.bytes.reversed()), entityTag: "\"2\"")
            let old = ServedFile(Self.bytes, pace: Self.pace)
            let (count, gate) = (Counter(), try ScriptGate())
            server.route("/file") { request in
                switch (request.headers["If-Range"], request.headers["Range"]) {
                case ("\"2\"", _):
                    guard count.next() > 1 else { return new.script(for: request) }
                    // The others have sent their bytes by then.
                    var script = old.script(for: request)
                    script.actions.insert(.delay(.milliseconds(300)), at: 0)
                    return script
                case (_, nil): return old.script(for: request)
                default:
                    let beginning = Reply(
                        status: 200, headers: ["ETag": "\"2\""], body: .bytes(new.bytes.prefix(1_000)),
                        framing: .contentLength(declared: 400_000))
                    return Script([.reply(beginning), .wait(gate)])
                }
            }
            let path = "\(directory.path)/other"
            _ = try await SessionManager(for: server)
                .download(resuming: data, to: .file(path), options: Self.options(6, isDurable: isDurable)).value
            gate.open()
            #expect(count.next() > 2)
            #expect(try directory.read("other") == Self.bytes)
        }
    }

    @Test func `a file that changed between two downloads starts over`() async throws {
        try await StubServer.with { server in
            _ = try await breakOff(server)
            let other = Data(Self.bytes.reversed())
            server.serve(ServedFile(other, entityTag: "\"2\"", pace: Self.pace))
            _ = try await SessionManager(for: server)
                .download("file", to: .file(file), options: Self.options(isDurable: true)).value
            #expect(try directory.read("file") == other)
        }
    }

    @Test func `records with impossible parts are repaired`() async throws {
        try await StubServer.with { server in
            for ranges in [
                ByteRanges([0..<400_000]), ByteRanges([300_000..<900_000]), ByteRanges([-5..<3, 399_999..<400_000]),
            ] {
                var data = try await breakOff(server)
                data.parts = ranges
                _ = try directory.write(JSONEncoder().encode(data), to: "file.part.json")
                var partial = Self.bytes
                partial.replaceSubrange(Int(data.offset)..<Int(data.offset) + 1, with: [0])
                _ = try directory.write(partial, to: "file.part")
                server.serve(ServedFile(Self.bytes, pace: Self.pace))
                let options = Self.options(isDurable: true).with {
                    $0.expectedDigest = try? ContentDigest(of: Self.bytes)
                }
                // Bytes that the record counts wrongly are found by the digest at the latest.
                do {
                    _ = try await SessionManager(for: server).download("file", to: .file(file), options: options).value
                    #expect(try directory.read("file") == Self.bytes)
                } catch SessionError.digest {
                    #expect(try !directory.contents.contains("file"))
                }
                for name in try directory.contents {
                    try FileManager.default.removeItem(atPath: "\(directory.path)/\(name)")
                }
            }
        }
    }

    @Test func `parts that follow the first bytes without a gap are part of the file`() async throws {
        try await StubServer.with { server in
            for part: Range<Int64> in [399_990..<400_000, 300_000..<350_000] {
                var data = try await breakOff(server)
                (data.offset, data.parts) = (part.lowerBound, ByteRanges([part]))
                _ = try directory.write(Self.bytes, to: "file.part")
                _ = try directory.write(JSONEncoder().encode(data), to: "file.part.json")
                server.serve(ServedFile(Self.bytes))
                let options = Self.options(1, isDurable: true)
                let value = try await SessionManager(for: server)
                    .download("file", to: .file(file), options: options).value
                #expect(value.size == 400_000)
                #expect(try directory.read("file") == Self.bytes)
            }
        }
    }

    @Test(arguments: [true, false])
    func `bytes stay if a segment is of another version, and the program does not permit starting over`(
        isDurable: Bool
    ) async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 100_000, expected: 400_000)))
        let transport = MockTransport { request in
            let isSegment = request.headers[.range]?.hasSuffix("-") == false
            var fields: HTTPFields = [.eTag: isSegment ? "\"2\"" : "\"1\""]
            guard let range = request.headers[.range] else {
                fields[.contentLength] = "400000"
                return MockResponse([.head(.ok, fields), .chunk(Self.bytes.prefix(100_000)), .fail(lost)])
            }
            let bytes = isSegment ? range.replacing("=", with: " ") : "bytes 100000-399999"
            fields[.contentRange] = bytes + "/400000"
            return MockResponse([.head(.partialContent, fields), .hang])
        }
        let manager = SessionManager(on: transport)
        var options = Self.options(1, isDurable: isDurable)
        let first = try await sessionError {
            _ = try await manager.download("file", to: .file(file), options: options).value
        }
        let data = try #require(first.resumeData)
        (options.segments, options.startsOverIfNotResumable) = (2, false)
        let error = try await sessionError { _ = try await manager.download(resuming: data, options: options).value }
        #expect(error.resumeFailure == .changed)
        #expect(error.resumeData == data)
        if isDurable { #expect(ResumeData.left(at: file) == data) }
        data.discard()
    }

    /// Leaves a download whose first connection has delivered nothing.
    private func leaveBytesAfterGap(_ server: StubServer, _ manager: SessionManager) async throws -> ResumeData {
        server.serve(ServedFile(Self.bytes, interruption: .close(after: 100_000)))
        let error = try await sessionError {
            _ = try await manager.download("file", to: .file(file), options: Self.options(1)).value
        }
        var data = try #require(error.resumeData)
        (data.offset, data.parts) = (0, ByteRanges([50_000..<100_000]))
        return data
    }

    @Test(arguments: [true, false])
    func `bytes after a gap stay if the file is of another version, and the program does not permit starting over`(
        isSame: Bool
    ) async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await leaveBytesAfterGap(server, manager)
            let now = isSame ? Self.bytes : Data(Self.bytes.reversed())
            server.serve(ServedFile(now, entityTag: isSame ? "\"1\"" : "\"2\""))
            var options = Self.options(1)
            options.startsOverIfNotResumable = false
            if !isSame {
                let error = try await sessionError {
                    _ = try await manager.download(resuming: data, options: options).value
                }
                #expect(error.resumeFailure == .changed)
                #expect(error.resumeData == data)
                options.startsOverIfNotResumable = true
            }
            _ = try await manager.download(resuming: data, options: options).value
            #expect(try directory.read("file") == now)
            #expect(try directory.contents == ["file"])
        }
    }

    @Test func `a digest of the whole does not mix bytes of a version with those of another`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await leaveBytesAfterGap(server, manager)
            server.serve(ServedFile(Data(Self.bytes.reversed()), entityTag: "\"2\""))
            var options = Self.options(1)
            options.expectedDigest = try ContentDigest(of: Self.bytes)
            options.startsOverIfNotResumable = false
            let error = try await sessionError {
                _ = try await manager.download(resuming: data, options: options).value
            }
            #expect(error.resumeFailure == .changed)
            #expect(error.resumeData?.parts == data.parts)
            data.discard()
        }
    }

    @Test func `bytes after a gap are not received again where only the digest of the whole identifies them`()
        async throws
    {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            let data = try await leaveBytesAfterGap(server, manager)
            server.serve(ServedFile(Self.bytes, entityTag: nil))
            var options = Self.options(1)
            options.expectedDigest = try ContentDigest(of: Self.bytes)
            options.startsOverIfNotResumable = false
            _ = try await manager.download(resuming: data, options: options).value
            #expect(try directory.read("file") == Self.bytes)
            #expect(server.ranges == [nil, nil, "bytes=100000-399999"])
        }
    }

    @Test func `bytes after a gap stay if the same version comes without its size`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 10_000, expected: nil)))
        let transport = MockTransport { _ in
            MockResponse([.head(.ok, [.eTag: "\"1\""]), .chunk(Self.bytes.prefix(10_000)), .fail(lost)])
        }
        try await StubServer.with { server in
            let data = try await leaveBytesAfterGap(server, SessionManager(for: server))
            let error = try await sessionError {
                _ = try await SessionManager(on: transport).download(resuming: data, options: Self.options(1)).value
            }
            #expect(error.resumeData?.offset == 10_000)
            #expect(error.resumeData?.parts == data.parts)
            #expect(error.resumeData?.totalBytes == 400_000)
            error.resumeData?.discard()
        }
    }

    @Test func `a negative offset counts as none`() async throws {
        try await StubServer.with { server in
            let manager = SessionManager(for: server)
            var data = try await leaveBytesAfterGap(server, manager)
            data.offset = -1
            server.serve(ServedFile(Self.bytes))
            var options = Self.options(1)
            options.pieceDigests = try PieceDigests(of: Self.bytes, pieceLength: 100_000)
            _ = try await manager.download(resuming: data, options: options).value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `cancellation ends all segments, and keeps what a durable download has`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, interruption: .hang(after: 20_000), pace: Self.pace))
            for isDurable in [true, false] {
                let manager = SessionManager(for: server)
                let task = manager.download("file", to: .file(file), options: Self.options(isDurable: isDurable))
                for await progress in task.progress where progress.completedBytes >= 60_000 { break }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
                let left = try directory.contents
                #expect(left == (isDurable ? ["file.part", "file.part.json"] : []))
                if isDurable { task.resumeData?.discard() }
                await manager.shutdown()
            }
        }
    }

    @Test func `a suspended download receives nothing, and goes on`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes))
            let limit = SpeedLimit(bytesReceivedPerSecond: 1)
            let manager = SessionManager(for: server) { $0.speedLimits = [limit] }
            let task = manager.download("file", to: .file(file), options: Self.options())
            for await progress in task.progress where progress.completedBytes > 0 { break }
            task.suspend()
            #expect(task.status.state == .suspended)
            limit.bytesReceivedPerSecond = nil
            // A download that is not suspended ends meanwhile.
            _ = try await manager.download("file", to: .file("\(directory.path)/other"), options: Self.options()).value
            #expect(task.status.state == .suspended)
            #expect(try !directory.contents.contains("file"))
            task.resume()
            _ = try await task.value
            #expect(try directory.read("file") == Self.bytes)
        }
    }

    @Test func `the time limit of the call ends a suspended download`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, pace: Script.Pace(bytes: 100, every: .milliseconds(5))))
            let manager = SessionManager(for: server)
            var request = try manager.request(.get, "file")
            request.timeout = .milliseconds(500)
            let task = manager.download(request, to: .file(file), options: Self.options())
            for await progress in task.progress where progress.completedBytes > 0 { break }
            task.suspend()
            let error = try await sessionError { _ = try await task.value }
            #expect(error.isTimeout)
            #expect(error.context?.timeLimit == .milliseconds(500))
        }
    }

    @Test func `a segment that cannot be written fails the download`() async throws {
        try await StubServer.with { server in
            server.serve(ServedFile(Self.bytes, pace: Self.pace))
            // Like a full disk, but for the record alone.
            try FileManager.default.createDirectory(
                atPath: "\(file).part.json.new", withIntermediateDirectories: false)
            let manager = SessionManager(for: server)
            let error = try await sessionError {
                _ = try await manager.download("file", to: .file(file), options: Self.options(isDurable: true)).value
            }
            #expect(error.fileFailure?.path == "\(file).part.json")
            await manager.shutdown()
        }
    }

    @Test func `the error of the first response decides whether the rest is requested again`() async throws {
        let lost = TransportError(.connectionLost(.inBody(received: 4_000, expected: 400_000)))
        let (count, gate) = (Counter(), try ScriptGate())
        let transport = MockTransport { request in
            guard let range = request.headers[.range] else {
                return MockResponse([
                    .head(.ok, [.contentLength: "400000", .eTag: "\"1\""]), .chunk(Self.bytes.prefix(4_000)),
                    .fail(lost),
                ])
            }
            guard range.hasSuffix("-"), let start = Int(range.dropFirst("bytes=".count).dropLast()) else {
                // The second segment takes the place of the first response.
                if count.next() == 1 { gate.open() }
                try await gate.wait()
                throw SessionError.notResumable(.changed)
            }
            return MockResponse(
                status: .partialContent, headers: [.contentRange: "bytes \(start)-399999/400000"],
                chunks: [Self.bytes[start...]])
        }
        let manager = SessionManager(on: transport) {
            $0.retryPolicy = RetryPolicy(limit: 2).with { $0.backoff = Backoff(base: .zero) }
        }
        _ = try await manager.download("file", to: .file(file), options: Self.options(2)).value
        #expect(try directory.read("file") == Self.bytes)
    }

    @Test func `a response that opens while the download is cancelled is closed`() async throws {
        let transport = try DeafTransport()
        let manager = SessionManager(on: transport) {
            $0.clock = DeafTransport.DeafClock(isClosed: transport.isClosed)
        }
        let task = manager.download("file", to: .file(file), options: Self.options(2))
        try await transport.hasSegment.wait()
        task.cancel()
        transport.isCancelled.open()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(transport.closed.withLock(\.self) == ["first", "segment"])
    }

    @Test(arguments: ["Content-Digest", "Repr-Digest"], [true, false])
    func `the digests of segments are verified`(name: String, isRight: Bool) async throws {
        let gate = try ScriptGate()
        let name = try #require(HTTPField.Name(name))
        let whole = name.canonicalName == "repr-digest"
        let half = Self.bytes.dropFirst(200_000)
        let digest = try ContentDigest(of: isRight ? whole ? Self.bytes : half : Data()).fieldValue
        let transport = MockTransport { request in
            guard request.headers[.range] != nil else {
                let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\""]
                return MockResponse([.head(.ok, fields), .wait(gate), .chunk(Self.bytes.prefix(200_000)), .hang])
            }
            var (fields, trailers): (HTTPFields, HTTPFields) = ([.contentRange: "bytes 200000-399999/400000"], [:])
            if whole { fields[name] = digest } else { trailers[name] = digest }
            return MockResponse(status: .partialContent, headers: fields, chunks: [half], trailers: trailers)
        }
        let task = SessionManager(on: transport).download("file", to: .file(file), options: Self.options(2))
        // The first response does not bring the bytes of the other.
        for await event in task.events {
            if case .exchange(_, .finished) = event { break }
        }
        gate.open()
        do {
            _ = try await task.value
            #expect(isRight)
        } catch let error as SessionError {
            #expect(!isRight && error.digestFailure != nil)
        }
    }

    // MARK: Mirrors

    private func mirrored(_ servers: [StubServer], _ segments: DownloadSegments = 6) throws -> DownloadOptions {
        var options = Self.options(segments)
        options.expectedDigest = try ContentDigest(of: Self.bytes)
        options.mirrors = servers.map { $0.url("/file") }
        options.segmentTuning.interval = .milliseconds(5)
        return options
    }

    @Test func `mirrors require a digest`() async throws {
        let manager = SessionManager(on: MockTransport(.text("x")))
        var options = Self.options()
        options.mirrors = [try url("http://b.example/file")]
        let error = try await sessionError {
            _ = try await manager.download("file", to: .file(file), options: options).value
        }
        #expect(error.reason == .invalidRequest("mirrors require expectedDigest or pieceDigests"))
    }

    @Test func `a body is not sent to mirrors`() async throws {
        let transport = MockTransport(.status(.serviceUnavailable))
        let manager = SessionManager(on: transport)
        var options = Self.options(1)
        options.expectedDigest = try ContentDigest(of: Self.bytes)
        options.mirrors = [try url("http://b.example/file")]
        let request = try manager.request(.post, "file", body: .string("secret"))
        let error = try await sessionError {
            _ = try await manager.download(request, to: .file(file), options: options).value
        }
        #expect(error.reason == .invalidRequest("mirrors require a request without a body"))
        #expect(transport.requests.isEmpty)
    }

    @Test func `the response of a download is that of the mirror, if its own server rejects the request`() async throws
    {
        try await StubServer.with { mirror in
            try await StubServer.with { server in
                server.route("/file", .status(404))
                mirror.serve(ServedFile(Self.bytes))
                let task = SessionManager(for: server).download(
                    "file", to: .file(file), options: try mirrored([mirror], 1))
                #expect(try await task.value.response.statusCode == 200)
                #expect(try await task.response.status == .ok)
            }
        }
    }

    @Test func `segments come from mirrors, to which no secrets are sent`() async throws {
        try await StubServer.with { server in
            try await StubServer.with { mirror in
                server.serve(ServedFile(Self.bytes, pace: Self.pace))
                // Another server has tags of its own.
                mirror.serve(ServedFile(Self.bytes, entityTag: "\"m\"", pace: Self.pace))
                let request = Request(url: server.url("/file"), headers: [.authorization: "secret", .from: "me"])
                let manager = SessionManager(for: server)
                _ = try await manager.download(request, to: .file(file), options: mirrored([mirror])).value
                #expect(try directory.read("file") == Self.bytes)
                let requests = mirror.activity.requests
                #expect(requests.count > 1)
                #expect(requests.allSatisfy { $0.headers["Authorization"] == nil && $0.headers["From"] == "me" })
                #expect(requests.first?.headers["If-Range"] == nil)
                #expect(Self.ranges(mirror).count == requests.count)
            }
        }
    }

    @Test(arguments: [true, false])
    func `a mirror is asked over the same proxy with the field for it`(isEnvironment: Bool) async throws {
        let urls = try [url("https://b.example/file"), url("http://c.example/file")]
        let transport = MockTransport {
            $0.url == urls[1] ? .text(String(decoding: Self.bytes, as: UTF8.self)) : .status(.gone)
        }
        let manager = SessionManager(on: transport) {
            $0.headers = [.authorization: "session", .proxyAuthorization: "Bearer session"]
            $0.proxy = isEnvironment ? .environment : .proxy(Proxy(.http, host: "proxy.example", port: 1))
        }
        for headers in [[:], [.proxyAuthorization: "Bearer own"]] as [HTTPFields] {
            let request = try Request(url: url("http://a.example/file"), headers: headers)
            _ = try? await manager.download(
                request, to: .file(file), options: mirrored([], 1).with { $0.mirrors = urls }
            ).value
        }
        let sent = transport.requests.map(\.request.headers)
        #expect(sent.map { $0[.authorization] } == ["session", nil, nil, "session", nil, nil])
        let fields = ["Bearer session", "Bearer own"].map { [$0, isEnvironment ? nil : $0, $0] as [String?] }
        #expect(sent.map { $0[.proxyAuthorization] } == Array(fields.joined()))
    }

    @Test(arguments: [true, false])
    func `wrong bytes of a mirror are requested again in a later process that needs a single request`(
        hasMirrors: Bool
    ) async throws {
        let bytes = Self.bytes.prefix(60_000)
        let (gate, records) = (try ScriptGate(), Lock<[Int64?]>([]))
        let whole: HTTPFields = [.contentLength: "60000", .eTag: "\"1\""]
        @Sendable func part(_ range: String, _ content: Data) -> [MockResponse.Step] {
            let fields: HTTPFields = [.contentRange: range.replacing("=", with: " ") + "/60000"]
            return [.head(.partialContent, fields), .chunk(content)]
        }
        let transport = MockTransport { [file] request in
            let isFirst = records.withLock { records in
                records.append(ResumeData.left(at: file)?.offset)
                return records.count == 1
            }
            switch request.headers[.range] {
            case nil where isFirst:
                return MockResponse([.head(.ok, whole), .wait(gate), .chunk(bytes.prefix(30_000)), .hang])
            case nil: return MockResponse([.head(.ok, whole), .chunk(bytes)])
            case "bytes=55000-"?: return MockResponse(part("bytes=55000-59999", bytes.suffix(5_000)))
            case let range?: return MockResponse(part(range, Data(repeating: 7, count: 25_000)) + [.hang])
            }
        }
        let manager = SessionManager(on: transport)
        var options = try mirrored([], 2).with { $0.isDurable = true }
        options.expectedDigest = try ContentDigest(of: bytes)
        options.mirrors = [try url("http://b.example/file")]
        // No segment is left because it is slower than the other.
        options.segmentTuning.patience = .max
        options.segmentTuning.interval = .milliseconds(60)
        let first = manager.download("file", to: .file(file), options: options)
        for await progress in first.progress {
            if progress.completedBytes == 25_000 { gate.open() }
            if progress.completedBytes == 55_000 { break }
        }
        first.cancel()
        _ = try? await first.value
        #expect(ResumeData.left(at: file)?.offset == 55_000)
        options.segments = 1
        if !hasMirrors { options.mirrors = [] }
        _ = try await manager.download("file", to: .file(file), options: options).value
        #expect(try directory.read("file") == bytes)
        #expect(transport.requests.map { $0.request.headers[.range] }.suffix(2) == ["bytes=55000-", nil])
        #expect(transport.requests.map(\.request.url.absoluteString).suffix(2).allSatisfy { $0.contains("a.example") })
        #expect(records.withLock(\.self).last == .some(0), "The wrong bytes do not count any more.")
        await manager.shutdown()
    }

    @Test(arguments: [true, false])
    func `a mirror that sends one byte for each request is left, and another one is used`(
        announcesAll: Bool
    ) async throws {
        let bytes = Self.bytes.prefix(1_000)
        let gate = try ScriptGate()
        let count = Counter()
        let transport = MockTransport { request in
            guard let range = request.headers[.range] else {
                let lost = TransportError(.connectionLost(.inBody(received: 1, expected: 1_000)))
                let fields: HTTPFields = [.contentLength: "1000", .eTag: "\"1\""]
                return MockResponse([.head(.ok, fields), .chunk(bytes.prefix(1)), .wait(gate), .fail(lost)])
            }
            let ends = range.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) }
            let host = request.url.host()
            if host == "b.example", count.next() == 20 { gate.open() }
            let last = host == "b.example" ? ends[0] : ends[1]
            let fields: HTTPFields = [.contentRange: "bytes \(ends[0])-\(announcesAll ? ends[1] : last)/1000"]
            // The other servers answer when the mirror has been asked often enough.
            let wait: [MockResponse.Step] = host == "b.example" ? [] : [.wait(gate)]
            return MockResponse([.head(.partialContent, fields)] + wait + [.chunk(bytes[ends[0]...last])])
        }
        var options = Self.options(3)
        options.segmentTuning.minimum = 10
        options.segmentTuning.patience = .max
        options.expectedDigest = try ContentDigest(of: bytes)
        options.mirrors = try ["http://b.example/file", "http://c.example/file"].map { try url($0) }
        _ = try await SessionManager(on: transport).download("file", to: .file(file), options: options).value
        #expect(try directory.read("file") == bytes)
        #expect(count.next() == 21)
    }

    @Test(arguments: [true, false])
    func `the validator of a mirror in place of the server is not sent to the server later`(
        isDurable: Bool
    ) async throws {
        let count = Counter()
        let lost = TransportError(.connectionLost(.inBody(received: 4_000, expected: 400_000)))
        let transport = MockTransport { request in
            guard request.url.host() == "a.example" else {
                let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"m\""]
                return MockResponse([.head(.ok, fields), .chunk(Self.bytes.prefix(4_000)), .fail(lost)])
            }
            guard count.next() > 0 else { return .status(.notFound) }
            guard request.headers[.ifRange] == nil else { return .data(Self.bytes) }
            let fields: HTTPFields = [.contentRange: "bytes 4000-399999/400000", .eTag: "\"1\""]
            return MockResponse(status: .partialContent, headers: fields, chunks: [Self.bytes.dropFirst(4_000)])
        }
        let manager = SessionManager(on: transport)
        var options = Self.options(1, isDurable: isDurable)
        options.expectedDigest = try ContentDigest(of: Self.bytes)
        options.mirrors = [try url("http://b.example/file")]
        let error = try await sessionError {
            _ = try await manager.download("file", to: .file(file), options: options).value
        }
        if isDurable {
            #expect(ResumeData.left(at: file) == error.resumeData)
        } else {
            options.resumeData = error.resumeData
        }
        let value = try await manager.download("file", to: .file(file), options: options).value
        #expect(value.response.statusCode == 206)
        #expect(try directory.read("file") == Self.bytes)
    }

    @Test func `one of three mirrors lies, one is slow, and one has another file`() async throws {
        try await StubServer.with { server in
            try await StubServer.with { liar in
                try await StubServer.with { snail in
                    try await StubServer.with { stranger in
                        server.serve(ServedFile(Self.bytes, pace: Self.pace))
                        liar.serve(ServedFile(Data(repeating: 7, count: Self.bytes.count), entityTag: nil))
                        snail.serve(ServedFile(Self.bytes, pace: Script.Pace(bytes: 10, every: .milliseconds(50))))
                        stranger.serve(ServedFile(Self.bytes + Data("more".utf8)))
                        let manager = SessionManager(for: server)
                        let options = try mirrored([liar, snail, stranger])
                        _ = try await manager.download("file", to: .file(file), options: options).value
                        #expect(try directory.read("file") == Self.bytes)
                        #expect(liar.activity.requests.count > 0)
                        #expect(stranger.activity.requests.count == 1)
                        await manager.shutdown()
                    }
                }
            }
        }
    }
}

/// A transport whose responses cancellation does not end; that of a segment opens after it.
private final class DeafTransport: Transport {
    let hasSegment: ScriptGate
    let isCancelled: ScriptGate
    let isClosed: ScriptGate
    let closed = Lock<Set<String>>([])

    init() throws {
        hasSegment = try ScriptGate()
        isCancelled = try ScriptGate()
        isClosed = try ScriptGate()
    }

    func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        guard let range = request.headers[.range] else {
            let fields: HTTPFields = [.contentLength: "400000", .eTag: "\"1\""]
            return OpenResponse(
                head: ResponseHead(status: .ok, headers: fields, url: request.url),
                body: ResponseBody(source: Source(name: "first", transport: self)))
        }
        hasSegment.open()
        await Self.wait(for: isCancelled)
        let fields: HTTPFields = [.contentRange: range.replacing("=", with: " ") + "/400000"]
        return OpenResponse(
            head: ResponseHead(status: .partialContent, headers: fields, url: request.url),
            body: ResponseBody(source: Source(name: "segment", transport: self)))
    }

    func shutdown() async {}

    fileprivate static func wait(for gate: ScriptGate) async {
        await Task { try? await gate.wait() }.value
    }

    private struct Source: ResponseBodySource {
        let name: String
        let transport: DeafTransport

        func next() async throws -> Data? {
            await DeafTransport.wait(for: transport.isClosed)
            return nil
        }

        var ending: ResponseEnding? { nil }

        func close() async {
            transport.closed.withLock { _ = $0.insert(name) }
            transport.isClosed.open()
        }
    }

    /// A clock on which nothing but the end of the first response ends a sleep.
    struct DeafClock: Clock {
        let isClosed: ScriptGate
        var now: ContinuousClock.Instant { .now }
        var minimumResolution: Duration { .zero }

        func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
            await DeafTransport.wait(for: isClosed)
        }
    }
}
