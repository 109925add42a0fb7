// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// A splitter of a stream into JSON texts, wherever its bytes are split into chunks.
///
/// In a JSON text sequence (RFC 7464) a text is complete with the LF after it, although only the next separator ends
/// it. The splitter therefore follows the nesting of arrays, objects and strings. Separators do not occur within JSON
/// texts, so that a text that was cut off affects no other one.
package struct JSONStreamSplitter: BodyParser {
    private let format: JSONStreamFormat
    private let limit: Int
    private var bytes: [UInt8] = []
    /// The start of the current text.
    private var start = 0
    /// The end of the bytes already examined.
    private var examined = 0
    private var position: Position
    /// Whether the stream may begin with a byte order mark that has not been examined.
    private var mayHaveMark: Bool
    private var nesting = Nesting()
    /// The number of the current line or text, counted from 1; 0 before the first text of a sequence.
    package private(set) var number = 0

    /// Creates a splitter for lines.
    ///
    /// - Parameter limit: The maximum size of a text in bytes.
    package static func lines(limit: Int) -> JSONStreamSplitter {
        JSONStreamSplitter(.lines, limit: limit)
    }

    /// Creates a splitter for a JSON text sequence.
    ///
    /// - Parameter limit: The maximum size of a text in bytes.
    package static func sequence(limit: Int) -> JSONStreamSplitter {
        JSONStreamSplitter(.sequence, limit: limit)
    }

    init(_ format: JSONStreamFormat, limit: Int) {
        self.format = format
        self.limit = limit
        position = format == .lines ? .inText : .outside
        mayHaveMark = format == .lines
        if format == .lines { number = 1 }
    }

    /// A part of the stream.
    package enum Part: Equatable, Sendable {
        /// A text, which may be invalid JSON.
        case text(Data)
        /// The beginning of a text that exceeds the limit.
        case tooLong(Data)
        /// A text of a sequence that was cut off.
        case truncated(Data)
        /// Bytes of a sequence that do not follow a separator.
        case unseparated(Data)
    }

    private enum Position {
        /// In a text.
        case inText
        /// After a complete text of a sequence, or before the first one.
        case outside
        /// In bytes that do not follow a separator.
        case inRest
        /// In a text that was reported as too long.
        case skipping
    }

    /// Adds a chunk of bytes.
    package mutating func append(_ chunk: Data) {
        if start > 0 {
            bytes.removeSubrange(..<start)
            examined -= start
            start = 0
        }
        bytes.append(contentsOf: chunk)
    }

    /// Returns the next part; `nil` if more bytes are needed.
    package mutating func next() -> (part: Part, number: Int)? {
        while examined < bytes.count {
            let byte = bytes[examined]
            examined += 1
            if mayHaveMark, examined == 3 {
                mayHaveMark = false
                if number == 1, bytes.starts(with: Self.mark) {
                    start = 3
                    continue
                }
            }
            if byte == format.separator {
                let part = endPart(at: examined - 1)
                let number = number
                beginText()
                if let part { return (part, number) }
                continue
            }
            if format == .sequence, let part = examine(byte) { return (part, number) }
            if position == .inText || position == .inRest, examined - start > limit, !isInMark {
                position = .skipping
                return (.tooLong(slice(to: min(examined, start + 120))), number)
            }
            if position == .skipping || position == .outside { start = examined }
        }
        return nil
    }

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Whether the bytes so far are the beginning of a byte order mark, which is not a part of the text.
    private var isInMark: Bool { mayHaveMark && Self.mark.starts(with: bytes[..<examined]) }

    /// Returns the part at the end of the stream; `nil` if only whitespace is left.
    package mutating func finish() -> (part: Part, number: Int)? {
        defer { start = bytes.count }
        return endPart(at: bytes.count).map { ($0, number) }
    }

    private mutating func beginText() {
        number += 1
        start = examined
        position = .inText
        nesting = Nesting()
    }

    /// Returns the part that a separator or the end of the stream ends; `nil` for a blank one.
    private func endPart(at end: Int) -> Part? {
        switch position {
        case .outside, .skipping: return nil
        case .inRest: return .unseparated(slice(to: end))
        case .inText:
            let text = slice(to: end)
            guard !text.allSatisfy(JSONStreamSplitter.isBlank) else { return nil }
            guard format == .lines else { return nesting.isDelimited ? .text(text) : .truncated(text) }
            return .text(text)
        }
    }

    /// Follows a byte of a sequence. Returns a text that is complete with it.
    private mutating func examine(_ byte: UInt8) -> Part? {
        switch position {
        case .inText:
            nesting.examine(byte)
            guard byte == UInt8(ascii: "\n"), nesting.isDelimited else { return nil }
            let text = slice(to: examined - 1)
            start = examined
            position = .outside
            return .text(text)
        case .outside:
            guard !Self.isBlank(byte) else { return nil }
            start = examined - 1
            position = .inRest
            return nil
        case .inRest, .skipping:
            return nil
        }
    }

    /// The bytes of the current part, without CR at its end.
    private func slice(to end: Int) -> Data {
        var text = bytes[start..<end]
        if text.last == UInt8(ascii: "\r") { text.removeLast() }
        return Data(text)
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\n")
            || byte == UInt8(ascii: "\r")
    }

    /// The nesting of arrays, objects and strings, from which follows whether a text is complete.
    private struct Nesting {
        private var depth = 0
        private var isInString = false
        private var isEscaped = false
        private var state = State.empty

        private enum State {
            case empty
            /// In a number or literal, which only whitespace after it delimits (RFC 7464 §2.4).
            case inScalar
            case inValue
            case complete
        }

        /// Whether the text cannot continue.
        var isDelimited: Bool { state == .complete }

        mutating func examine(_ byte: UInt8) {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                    if depth == 0 { state = .complete }
                }
                return
            }
            switch byte {
            case UInt8(ascii: "\""):
                isInString = true
                state = .inValue
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                state = .inValue
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
                if depth <= 0 { state = .complete }
            case let byte where JSONStreamSplitter.isBlank(byte):
                if state == .inScalar { state = .complete }
            default:
                if state == .empty { state = .inScalar }
            }
        }
    }
}
