// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// Autobahn's cases about frames, control frames and the closing handshake, sections 1 to 5 and 7.
@Suite(.timeLimit(.minutes(5))) struct AutobahnFramesTests {
    private typealias Row = AutobahnCase

    private static let hello = "Hello, world!"
    private static let bytes: [UInt8] = [0x00, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0x00, 0xFF]
    private static let ping = [UInt8].frame(0x89)
    private static let text = [UInt8].frame(0x81, hello)

    // MARK: 1, framing

    private static let sizes = [0, 125, 126, 127, 128, 65_535, 65_536]

    private static let framing: [AutobahnCase] =
        sizes.enumerated().flatMap { index, size in [text("1.1.\(index + 1)", size), binary("1.2.\(index + 1)", size)] }
        + [text("1.1.8", 65_536, .octets(997)), binary("1.2.8", 65_536, .octets(997))]

    private static func text(_ number: String, _ size: Int, _ chop: AutobahnCase.Chop = .whole) -> AutobahnCase {
        let text = String(repeating: "*", count: size)
        return Row(number, .frame(0x81, text), messages: [.text(text)], chop: chop)
    }

    private static func binary(_ number: String, _ size: Int, _ chop: AutobahnCase.Chop = .whole) -> AutobahnCase {
        let bytes = [UInt8](repeating: 0xFE, count: size)
        return Row(number, .frame(0x82, bytes), messages: [.binary(Data(bytes))], chop: chop)
    }

    @Test(arguments: framing)
    func `1: a message of any size is received and sent back`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    // MARK: 2, pings and pongs

    private static let tenPings: [[UInt8]] = (0..<10).map { Array("payload-\($0)".utf8) }

    private static let pings: [AutobahnCase] = [
        Row("2.1", ping, pongs: [[]]),
        Row("2.2", .frame(0x89, hello), pongs: [Array(hello.utf8)]),
        Row("2.3", .frame(0x89, bytes), pongs: [bytes]),
        Row("2.4", .frame(0x89, [UInt8](repeating: 0xFE, count: 125)), pongs: [[UInt8](repeating: 0xFE, count: 125)]),
        Row("2.5", .frame(0x89, [UInt8](repeating: 0xFE, count: 126)), ending: .failure(1002)),
        Row(
            "2.6", .frame(0x89, [UInt8](repeating: 0xFE, count: 125)), pongs: [[UInt8](repeating: 0xFE, count: 125)],
            chop: .octets(1)),
        Row("2.7", .frame(0x8A), .close(1000), ending: .closed(1000)),
        Row("2.8", .frame(0x8A, "unsolicited"), .close(1000), ending: .closed(1000)),
        Row("2.9", .frame(0x8A, "unsolicited"), .frame(0x89, "ping"), pongs: [Array("ping".utf8)]),
        Row("2.10", tenPings.map { .frame(0x89, $0) }, pongs: tenPings),
        Row("2.11", tenPings.map { .frame(0x89, $0) }, pongs: tenPings, chop: .octets(1)),
    ]

    @Test(arguments: pings)
    func `2: a ping is answered with its payload, and a pong is ignored`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    // MARK: 3, reserved bits

    private static let reservedBits: [AutobahnCase] = [
        Row("3.1", .frame(0x91, hello), ending: .failure(1002)),
        Row("3.2", text, .frame(0xA1, hello), ping, messages: [.text(hello)], ending: .failure(1002)),
        Row("3.3", text, .frame(0xB1, hello), ping, messages: [.text(hello)], chop: .frames, ending: .failure(1002)),
        Row("3.4", text, .frame(0xC1, hello), ping, messages: [.text(hello)], chop: .octets(1), ending: .failure(1002)),
        Row("3.5", .frame(0xD2, bytes), ending: .failure(1002)),
        Row("3.6", .frame(0xE9, hello), ending: .failure(1002)),
        Row("3.7", .frame(0xF8), ending: .failure(1002)),
    ]

    @Test(arguments: reservedBits)
    func `3: a reserved bit fails the connection`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    // MARK: 4, reserved opcodes

    private static let reservedOpcodes: [AutobahnCase] = [("4.1", 3), ("4.2", 11)].flatMap { number, opcode in
        let first = UInt8(0x80 | opcode)
        let after: [WebSocketMessage] = [.text(hello)]
        return [
            Row(number + ".1", .frame(first), ending: .failure(1002)),
            Row(number + ".2", .frame(first + 1, "payload"), ending: .failure(1002)),
            Row(number + ".3", text, .frame(first + 2), ping, messages: after, ending: .failure(1002)),
            Row(number + ".4", text, .frame(first + 3, hello), ping, messages: after, ending: .failure(1002)),
            Row(
                number + ".5", text, .frame(first + 4, hello), ping, messages: after, chop: .octets(1),
                ending: .failure(1002)),
        ]
    }

    @Test(arguments: reservedOpcodes)
    func `4: a reserved opcode fails the connection`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    // MARK: 5, fragments

    private static let ab: [WebSocketMessage] = [.text("fragment1fragment2")]
    private static let (first, second) = ([UInt8].frame(0x01, "fragment1"), [UInt8].frame(0x80, "fragment2"))
    private static let (pingBetween, pong) = ([UInt8].frame(0x89, "between"), Array("between".utf8))
    private static let (stray, openStray) = ([UInt8].frame(0x80, "stray"), [UInt8].frame(0x00, "stray"))
    private static let (piece, piecePing) = ([UInt8].frame(0x00, "piece"), [UInt8].frame(0x89, "again"))

    private static let fragments: [AutobahnCase] = [
        Row("5.1", .frame(0x09, "fragment1"), second, ending: .failure(1002)),
        Row("5.2", .frame(0x0A, "fragment1"), second, ending: .failure(1002)),
        Row("5.3", first, second, messages: ab),
        Row("5.4", first, second, messages: ab, chop: .frames),
        Row("5.5", first, second, messages: ab, chop: .octets(1)),
        Row("5.6", first, pingBetween, second, messages: ab, pongs: [pong]),
        Row("5.7", first, pingBetween, second, messages: ab, pongs: [pong], chop: .frames),
        Row("5.8", first, pingBetween, second, messages: ab, pongs: [pong], chop: .octets(1)),
        Row("5.9", stray, text, ending: .failure(1002)),
        Row("5.10", stray, text, chop: .frames, ending: .failure(1002)),
        Row("5.11", stray, text, chop: .octets(1), ending: .failure(1002)),
        Row("5.12", openStray, text, ending: .failure(1002)),
        Row("5.13", openStray, text, chop: .frames, ending: .failure(1002)),
        Row("5.14", openStray, text, chop: .octets(1), ending: .failure(1002)),
        Row("5.15", first, second, openStray, text, messages: ab, ending: .failure(1002)),
        Row("5.16", openStray, first, second, openStray, first, second, ending: .failure(1002)),
        Row("5.17", stray, first, second, stray, first, second, ending: .failure(1002)),
        Row("5.18", first, .frame(0x81, "fragment2"), ending: .failure(1002)),
        Row(
            "5.19", first, piece, pingBetween, piece, piece, piecePing, second,
            messages: [.text("fragment1piecepiecepiecefragment2")], pongs: [pong, Array("again".utf8)]),
        Row(
            "5.20", first, piece, pingBetween, piece, piece, piecePing, second,
            messages: [.text("fragment1piecepiecepiecefragment2")], pongs: [pong, Array("again".utf8)], chop: .frames),
    ]

    @Test(arguments: fragments)
    func `5: fragments are joined, and those out of order fail the connection`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    @Test func `5_19: a ping between fragments is answered before the message is complete`() async throws {
        try await StubServer.with { server in
            let incomplete = Data(Self.first + Self.piece + Self.pingBetween)
            server.route("/", Script([.acceptWebSocket(), .send(incomplete), .echoMessages()]))
            try await SessionManager(for: server).withWebSocket(Request(url: server.url())) { _ in
                _ = try await server.activity { $0.webSocketControlFrames.map(\.payload) == [Self.pong] }
            }
        }
    }

    @Test func `7_1_7: nothing is delivered after an invalid frame, also if it came with it`() async throws {
        try await StubServer.with { server in
            let frames: [UInt8] = [0x81, 0x01, 0xFF, 0x81, 0x03] + Array("abc".utf8)
            server.route("/", Script([.acceptWebSocket(), .send(Data(frames)), .hang]))
            try await SessionManager(for: server).withWebSocket(Request(url: server.url())) { socket in
                var iterator = socket.makeAsyncIterator()
                for _ in 0..<2 { await #expect(throws: TransportError.self) { try await iterator.next() } }
            }
        }
    }

    // MARK: 7, closing

    private static let invalidReason: [UInt8] =
        Array("κ\u{1F79}σμε".utf8) + [0xED, 0xA0, 0x80] + Array("edited".utf8)
    private static let long = String(repeating: "BAsd7&jh23", count: 26_214)

    private static let closing: [AutobahnCase] =
        [
            Row("7.1.1", text, messages: [.text(hello)]),
            Row("7.1.2", .close(1000), .frame(0x88), ending: .closed(1000)),
            Row("7.1.3", .close(1000), ping, ending: .closed(1000)),
            Row("7.1.4", .close(1000), text, ending: .closed(1000)),
            Row("7.1.5", first, .close(1000), second, ending: .closed(1000)),
            Row(
                "7.1.6", .frame(0x81, long), text, .close(1000), ping, messages: [.text(long), .text(hello)],
                ending: .closed(1000)),
            Row("7.3.1", .frame(0x88), ending: .closed(nil)),
            Row("7.3.2", .frame(0x88, "a"), ending: .failure(1002)),
            Row("7.3.3", .close(1000), ending: .closed(1000)),
            Row("7.3.4", .close(1000, reason: Array(hello.utf8)), ending: .closed(1000)),
            Row("7.3.5", .close(1000, reason: [UInt8](repeating: 0x2A, count: 123)), ending: .closed(1000)),
            Row("7.3.6", .close(1000, reason: [UInt8](repeating: 0x2A, count: 124)), ending: .failure(1002)),
            Row("7.5.1", .close(1000, reason: invalidReason), ending: .failure(1007)),
        ]
        + [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].enumerated().map {
            Row("7.7.\($0 + 1)", .close($1), ending: .closed($1))
        }
        + [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999].enumerated().map {
            Row("7.9.\($0 + 1)", .close($1), ending: .failure(1002))
        }
        // Autobahn allows any outcome.
        + [Row("7.13.1", .close(5000), ending: .failure(1002)), Row("7.13.2", .close(65_535), ending: .failure(1002))]

    @Test(arguments: closing)
    func `7: a close frame is answered with its code, and an invalid one refused`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }
}
