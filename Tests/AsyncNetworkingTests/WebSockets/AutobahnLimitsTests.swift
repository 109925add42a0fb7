// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

/// Autobahn's cases about large messages, many fragments and many messages, sections 9 and 10.
///
/// So that they take few seconds, messages of many fragments or pieces and the number of messages are smaller than
/// Autobahn's, and messages of more than 1 MiB are only received.
@Suite(.timeLimit(.minutes(5))) struct AutobahnLimitsTests {
    /// The parameters of a case, whose messages are made when it is played.
    struct Row: Sendable, CustomTestStringConvertible {
        let number: String
        let isText: Bool
        let size: Int
        var fragment: Int?
        var chop = AutobahnCase.Chop.whole
        var count = 1

        /// The printable ASCII characters.
        private static let characters = String(decoding: 0x20...0x7E, as: UTF8.self)

        var testDescription: String { number }

        func play() async throws {
            let text = String(repeating: Self.characters, count: size / Self.characters.utf8.count + 1)
            let payload = isText ? [UInt8](text.utf8.prefix(size)) : [UInt8](StubServer.generatedBytes(size))
            let message: WebSocketMessage =
                isText ? .text(String(decoding: payload, as: UTF8.self)) : .binary(Data(payload))
            let frames: [[UInt8]] = .fragments(isText ? 0x01 : 0x02, payload, size: fragment ?? max(1, size))
            let isEchoed = size <= 1 << 20
            let row = AutobahnCase(
                number, Array(repeating: frames, count: count).flatMap(\.self) + (isEchoed ? [] : [.close(1000)]),
                messages: Array(repeating: message, count: count), chop: chop,
                ending: isEchoed ? .afterEcho : .closed(1000))
            #expect(try await row.play() == row.expected)
        }
    }

    private static let kilo = 1 << 10
    private static let mega = 1 << 20

    /// Returns a case with text and one with bytes for each element.
    private static func rows<Element>(
        _ sections: (text: String, bytes: String), _ elements: [Element], _ make: (Element, String, Bool) -> Row
    ) -> [Row] {
        elements.enumerated().flatMap { index, element in
            [
                make(element, "\(sections.text).\(index + 1)", true),
                make(element, "\(sections.bytes).\(index + 1)", false),
            ]
        }
    }

    private static let large = rows(("9.1", "9.2"), [64 * kilo, 256 * kilo, mega, 4 * mega, 8 * mega, 16 * mega]) {
        Row(number: $1, isText: $2, size: $0)
    }

    @Test(arguments: large)
    func `9_1 and 9_2: a large message is received and sent back`(row: Row) async throws {
        try await row.play()
    }

    private static let fragmented = rows(
        ("9.3", "9.4"), [64, 256, kilo, 4 * kilo, 16 * kilo, 64 * kilo, 256 * kilo, mega, 4 * mega]
    ) {
        Row(number: $1, isText: $2, size: $0 < mega ? max(256 * kilo, $0) : 4 * mega, fragment: $0)
    }

    @Test(arguments: fragmented)
    func `9_3 and 9_4: a message of many fragments is received and sent back`(row: Row) async throws {
        try await row.play()
    }

    private static let chopped = rows(("9.5", "9.6"), [64, 128, 256, 512, kilo, 2 * kilo]) {
        Row(number: $1, isText: $2, size: 256 * kilo, chop: .octets($0))
    }

    @Test(arguments: chopped)
    func `9_5 and 9_6: a message that arrives in small pieces is received and sent back`(row: Row) async throws {
        try await row.play()
    }

    private static let many = rows(("9.7", "9.8"), [0, 16, 64, 256, kilo, 4 * kilo]) {
        Row(number: $1, isText: $2, size: $0, count: 100)
    }

    @Test(arguments: many)
    func `9_7 and 9_8: many small messages are received and sent back`(row: Row) async throws {
        try await row.play()
    }

    @Test func `10_1_1: a message in frames of 1300 bytes is received and sent back`() async throws {
        try await Row(number: "10.1.1", isText: true, size: 65_536, fragment: 1300).play()
    }
}
