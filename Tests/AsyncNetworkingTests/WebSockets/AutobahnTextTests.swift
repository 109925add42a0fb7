// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Testing

/// Autobahn's cases about UTF-8, section 6. The sequences are those of Markus Kuhn's UTF-8 decoder stress test.
@Suite(.timeLimit(.minutes(5))) struct AutobahnTextTests {
    private typealias Row = AutobahnCase

    private static let mixed = "Hello-µ@ßöäüàá-UTF-8!!"
    private static let greek = Array("κ\u{1F79}σμε".utf8)
    private static let middle = "middle frame payload"
    /// Invalid from its twelfth byte on: a surrogate after valid text.
    private static let surrogate = greek + [0xED, 0xA0, 0x80] + Array("edited".utf8)
    /// Invalid from its thirteenth byte on: a character above U+10FFFF after valid text.
    private static let tooHigh = greek + [0xF4, 0x90, 0x80, 0x80] + Array("edited".utf8)

    private static func octets(_ payload: [UInt8]) -> [[UInt8]] {
        .fragments(0x01, payload, size: 1)
    }

    private static let fragments: [AutobahnCase] = [
        Row("6.1.1", .frame(0x81), messages: [.text("")]),
        Row("6.1.2", .frame(0x01), .frame(0x00), .frame(0x80), messages: [.text("")]),
        Row("6.1.3", .frame(0x01), .frame(0x00, middle), .frame(0x80), messages: [.text(middle)]),
        Row("6.2.1", .frame(0x81, mixed), messages: [.text(mixed)]),
        Row("6.2.2", .frame(0x01, "Hello-µ@ßöä"), .frame(0x80, "üàá-UTF-8!!"), messages: [.text(mixed)]),
        Row("6.2.3", octets(Array(mixed.utf8)), messages: [.text(mixed)]),
        Row("6.2.4", octets(greek), messages: [.text("κ\u{1F79}σμε")]),
        Row("6.3.1", .frame(0x81, surrogate), ending: .failure(1007)),
        Row("6.3.2", octets(surrogate), ending: .failure(1007)),
        // The last fragments are not sent: the connection must fail before them.
        Row("6.4.1", .frame(0x01, greek), .frame(0x00, Array(tooHigh[11..<15])), ending: .failure(1007)),
        Row("6.4.2", .frame(0x01, Array(tooHigh[..<12])), .frame(0x00, [tooHigh[12]]), ending: .failure(1007)),
        // Within a frame, Autobahn also accepts a failure at its end.
        Row("6.4.3", .frame(0x81, tooHigh), chop: .octets(13), ending: .failure(1007)),
        Row("6.4.4", .frame(0x81, tooHigh), chop: .octets(14), ending: .failure(1007)),
    ]

    @Test(arguments: fragments)
    func `6_1 to 6_4: text is checked as its fragments arrive`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    // MARK: Sequences

    private static func valid(_ number: String, _ sequences: [[UInt8]]) -> [AutobahnCase] {
        sequences.enumerated().map { index, bytes in
            Row(
                "\(number).\(index + 1)", .frame(0x81, bytes), messages: [.text(String(decoding: bytes, as: UTF8.self))]
            )
        }
    }

    private static func invalid(_ number: String, from first: Int = 1, _ sequences: [[UInt8]]) -> [AutobahnCase] {
        sequences.enumerated().map { index, bytes in
            Row("\(number).\(index + first)", .frame(0x81, bytes), ending: .failure(1007))
        }
    }

    private static func between(_ bytes: [UInt8]) -> [UInt8] {
        Array("hello".utf8) + bytes + Array("world".utf8)
    }

    /// The prefixes of a text whose characters have 2, 3, 2, 2 and 2 bytes.
    private static let prefixes: [AutobahnCase] = (1...greek.count).map { count in
        let bytes = Array(greek.prefix(count))
        let isValid = [2, 5, 7, 9, 11].contains(count)
        return Row(
            "6.6.\(count)", .frame(0x81, bytes),
            messages: isValid ? [.text(String(decoding: bytes, as: UTF8.self))] : [],
            ending: isValid ? .afterEcho : .failure(1007))
    }

    /// The last two code points of all planes but the first.
    private static let noncharacters: [[UInt8]] = (1...16).flatMap { plane in
        [0xFFFE, 0xFFFF].compactMap { Unicode.Scalar(UInt32(plane << 16 | $0)).map { Array(String($0).utf8) } }
    }

    private static let validSequences: [AutobahnCase] =
        valid(
            "6.5",
            [
                between([0x24]), between([0xC2, 0xA2]), between([0xE2, 0x82, 0xAC]), between([0xF0, 0xA4, 0xAD, 0xA2]),
                greek,
            ])
        + prefixes
        + valid("6.7", [[0x00], [0xC2, 0x80], [0xE0, 0xA0, 0x80], [0xF0, 0x90, 0x80, 0x80]])
        + valid("6.9", [[0x7F], [0xDF, 0xBF], [0xEF, 0xBF, 0xBF], [0xF4, 0x8F, 0xBF, 0xBF]])
        + valid("6.11", [[0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xEF, 0xBF, 0xBD], [0xF4, 0x8F, 0xBF, 0xBF]])
        + valid("6.22", [[0xEF, 0xBF, 0xBE], [0xEF, 0xBF, 0xBF]] + noncharacters)
        + valid("6.23", (0xB9...0xBF).map { [0xEF, 0xBF, $0] })

    @Test(arguments: validSequences)
    func `6_5 to 6_23: valid sequences are received unchanged`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }

    /// Sequences of each length without their last byte, first those of the lowest and then those of the highest
    /// character.
    private static let incomplete: [[UInt8]] = [
        [0xC0], [0xE0, 0x80], [0xF0, 0x80, 0x80], [0xF8, 0x80, 0x80, 0x80], [0xFC, 0x80, 0x80, 0x80, 0x80],
        [0xDF], [0xEF, 0xBF], [0xF7, 0xBF, 0xBF], [0xFB, 0xBF, 0xBF, 0xBF], [0xFD, 0xBF, 0xBF, 0xBF, 0xBF],
    ]

    /// The alternation of 0x80 and 0xBF.
    private static let continuations: [UInt8] = [0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF]

    /// The first bytes of sequences of two to six bytes, each followed by a space.
    private static let lonelyStarts: [[UInt8]] = [0xC0...0xDE, 0xE0...0xEE, 0xF0...0xF6, 0xF8...0xFA, 0xFC...0xFC].map {
        $0.flatMap { [$0, 0x20] }
    }

    private static let (highSurrogates, lowSurrogates): ([[UInt8]], [[UInt8]]) = (
        [[0xED, 0xA0, 0x80], [0xED, 0xAD, 0xBF], [0xED, 0xAE, 0x80], [0xED, 0xAF, 0xBF]],
        [[0xED, 0xB0, 0x80], [0xED, 0xBE, 0x80], [0xED, 0xBF, 0xBF]]
    )

    private static let invalidSequences: [AutobahnCase] =
        invalid("6.8", [[0xF8, 0x88, 0x80, 0x80, 0x80], [0xFC, 0x84, 0x80, 0x80, 0x80, 0x80]])
        + invalid(
            "6.10",
            [[0xF7, 0xBF, 0xBF, 0xBF], [0xFB, 0xBF, 0xBF, 0xBF, 0xBF], [0xFD, 0xBF, 0xBF, 0xBF, 0xBF, 0xBF]])
        + invalid("6.11", from: 5, [[0xF4, 0x90, 0x80, 0x80]])
        + invalid("6.12", [[0x80], [0xBF]] + (2...6).map { Array(continuations.prefix($0)) } + [Array(0x80...0xBE)])
        + invalid("6.13", lonelyStarts)
        + invalid("6.14", incomplete)
        + invalid("6.15", [incomplete.flatMap(\.self)])
        + invalid("6.16", [[0xFE], [0xFF], [0xFE, 0xFE, 0xFF, 0xFF]])
        + invalid(
            "6.17",
            [
                [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF0, 0x80, 0x80, 0xAF], [0xF8, 0x80, 0x80, 0x80, 0xAF],
                [0xFC, 0x80, 0x80, 0x80, 0x80, 0xAF],
            ])
        + invalid(
            "6.18",
            [
                [0xC1, 0xBF], [0xE0, 0x9F, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF], [0xF8, 0x87, 0xBF, 0xBF, 0xBF],
                [0xFC, 0x83, 0xBF, 0xBF, 0xBF, 0xBF],
            ])
        + invalid("6.19", incomplete.prefix(5).map { $0 + [0x80] })
        + invalid("6.20", highSurrogates + lowSurrogates)
        + invalid(
            "6.21", highSurrogates.flatMap { high in [lowSurrogates[0], lowSurrogates[2]].map { high + $0 } })

    @Test(arguments: invalidSequences)
    func `6_8 to 6_21: invalid sequences fail the connection`(row: AutobahnCase) async throws {
        #expect(try await row.play() == row.expected)
    }
}
