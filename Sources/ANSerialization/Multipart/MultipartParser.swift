// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials
package import HTTPTypes

/// An incremental parser for multipart bodies (RFC 2046 §5.1.1), which receives bytes in chunks of any size and returns
/// steps.
///
/// ```
/// preamble ─ delimiter ─▶ header ─ blank line ─▶ content ─ delimiter ─▶ header … ─ closing delimiter ─▶ end
/// ```
///
/// Lines may end with LF alone, as sent by some cameras; the line ending before a delimiter belongs to the delimiter.
/// The parser buffers no more than a header, a chunk, and the start of a possible delimiter.
package struct MultipartParser: Sendable {
    /// The result of parsing the next bytes.
    package enum Step: Equatable {
        /// A part begins with the given header fields.
        case header(HTTPFields)
        /// At least one byte of the current part.
        case content(Data)
        /// The current part ends.
        case endOfPart
        /// The last part has ended; the remaining bytes are ignored.
        case end
        /// More bytes are needed.
        case needsMore
    }

    /// The element that the next bytes belong to.
    private enum State {
        case preamble
        case header(HTTPFields, length: Int)
        case content(length: Int)
        case end
    }

    /// The kind of a line, according to its beginning.
    private enum Line {
        case other
        /// More bytes are needed to decide.
        case undecided
        case delimiter(end: Int)
        case closingDelimiter
    }

    /// The maximum number of spaces and tabs after a delimiter in its line.
    private static let maximumPadding = 256

    private let delimiter: [UInt8]
    private let limits: MultipartLimits
    private var state = State.preamble
    private var parts = 0
    private var bytes: [UInt8] = []
    /// The position of the first byte that was not returned yet.
    private var start = 0
    /// The position up to which line endings were searched.
    private var searched = 0
    /// Whether `start` is the beginning of a line, so that a delimiter needs no preceding line ending.
    private var isAtLineStart = true
    private var skipped = 0
    private var isComplete = false
    /// The header line before the position with the lines that continue it; empty before the first one.
    private var headerLine: [UInt8] = []

    package init(boundary: String, limits: MultipartLimits) {
        delimiter = Array("--\(boundary)".utf8)
        self.limits = limits
    }

    /// Adds a chunk of bytes.
    package mutating func append(_ chunk: Data) {
        bytes.removeSubrange(..<start)
        searched -= start
        start = 0
        bytes.append(contentsOf: chunk)
    }

    /// Marks the end of the input.
    package mutating func finish() {
        isComplete = true
    }

    /// Returns the next step.
    package mutating func next() throws(SerializationError) -> Step {
        while true {
            switch state {
            case .preamble:
                let count = try skipPreamble()
                guard count > 0 else { return try missing() }
            case .header(let fields, let length):
                guard let header = try readLine(of: fields, length) else { return try missing() }
                return .header(header)
            case .content(let length):
                return try readContent(length)
            case .end:
                return .end
            }
        }
    }

    // MARK: Places

    /// Moves towards the first delimiter, and returns the distance.
    private mutating func skipPreamble() throws(SerializationError) -> Int {
        let before = start
        switch nextDelimiter() {
        case (let cut, .delimiter(let end)):
            skipped += cut - start
            try beginPart(at: end)
        case (let cut, .closingDelimiter):
            skipped += cut - start
            start = cut
            state = .end
        case (let cut, .other), (let cut, .undecided):
            skipped += cut - start
            start = cut
        }
        guard skipped <= limits.preamble else { throw .parts(.tooLarge(.preamble, limit: limits.preamble)) }
        if case .end = state { return 1 }
        return start - before
    }

    private mutating func beginPart(at end: Int) throws(SerializationError) {
        if let limit = limits.parts, parts >= limit { throw .parts(.tooLarge(.parts, limit: limit)) }
        parts += 1
        start = end
        searched = end
        state = .header([:], length: 0)
    }

    /// Parses header lines up to the blank one; `nil` if more bytes are needed.
    private mutating func readLine(
        of fields: HTTPFields, _ length: Int
    ) throws(SerializationError) -> HTTPFields? {
        var fields = fields
        var length = length
        while let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = bytes[start..<(end > start && bytes[end - 1] == UInt8(ascii: "\r") ? end - 1 : end)]
            length += end + 1 - start
            guard length <= limits.header else { throw .parts(.tooLarge(.header, limit: limits.header)) }
            start = end + 1
            searched = start
            if Self.isBlank(line.first), !headerLine.isEmpty {
                // RFC 5322 §2.2.3.
                while Self.isBlank(headerLine.last) { headerLine.removeLast() }
                headerLine += [UInt8(ascii: " ")] + line.drop { Self.isBlank($0) }
                continue
            }
            if !headerLine.isEmpty {
                guard fields.count < HTTPFields.maximumCount else {
                    throw .parts(.tooLarge(.fields, limit: HTTPFields.maximumCount))
                }
                try fields.append(line: headerLine)
            }
            headerLine = Array(line)
            guard !line.isEmpty else {
                state = .content(length: 0)
                isAtLineStart = true
                return fields
            }
        }
        searched = bytes.count
        guard length + bytes.count - start <= limits.header else {
            throw .parts(.tooLarge(.header, limit: limits.header))
        }
        state = .header(fields, length: length)
        return nil
    }

    private static func isBlank(_ byte: UInt8?) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    private mutating func readContent(_ length: Int) throws(SerializationError) -> Step {
        let (cut, line) = nextDelimiter()
        if cut > start {
            let (sum, overflows) = length.addingReportingOverflow(cut - start)
            if let limit = limits.part, overflows || sum > limit { throw .parts(.tooLarge(.part, limit: limit)) }
            let content = Data(bytes[start..<cut])
            start = cut
            isAtLineStart = false
            state = .content(length: sum)
            return .content(content)
        }
        switch line {
        case .delimiter(let end):
            try beginPart(at: end)
            return .endOfPart
        case .closingDelimiter:
            state = .end
            return .endOfPart
        case .other, .undecided:
            return try missing()
        }
    }

    private func missing() throws(SerializationError) -> Step {
        guard !isComplete else { throw .parts(.unexpectedEnd) }
        return .needsMore
    }

    // MARK: Delimiters

    /// Returns the end of the bytes that are certainly content, and the kind of the line that follows.
    private mutating func nextDelimiter() -> (cut: Int, Line) {
        if isAtLineStart {
            let line = line(at: start)
            guard case .other = line else { return (start, line) }
            isAtLineStart = false
        }
        var next = max(searched, start)
        while let end = bytes[next...].firstIndex(of: UInt8(ascii: "\n")) {
            let line = line(at: end + 1)
            if case .other = line {
                next = end + 1
                continue
            }
            searched = end
            return (end > start && bytes[end - 1] == UInt8(ascii: "\r") ? end - 1 : end, line)
        }
        searched = bytes.count
        // A line ending may be incomplete.
        let hasReturn = bytes.count > start && bytes.last == UInt8(ascii: "\r")
        return (hasReturn ? bytes.count - 1 : bytes.count, .other)
    }

    private func line(at start: Int) -> Line {
        var position = start
        for byte in delimiter {
            guard position < bytes.count else { return .undecided }
            guard bytes[position] == byte else { return .other }
            position += 1
        }
        if position < bytes.count, bytes[position] == UInt8(ascii: "-") {
            guard position + 1 < bytes.count else { return .undecided }
            return bytes[position + 1] == UInt8(ascii: "-") ? .closingDelimiter : .other
        }
        let end = min(bytes.count, position + Self.maximumPadding)
        while position < end, bytes[position] == UInt8(ascii: " ") || bytes[position] == UInt8(ascii: "\t") {
            position += 1
        }
        guard position < bytes.count else { return .undecided }
        if bytes[position] == UInt8(ascii: "\r") {
            position += 1
            guard position < bytes.count else { return .undecided }
        }
        return bytes[position] == UInt8(ascii: "\n") ? .delimiter(end: position + 1) : .other
    }
}

extension HTTPFields {
    /// Appends the field of a header line.
    fileprivate mutating func append(line: [UInt8]) throws(SerializationError) {
        guard !line.hasLongCombiningRun, let colon = line.firstIndex(of: UInt8(ascii: ":")),
            let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
        else { throw .parts(.partHeader(Excerpt.of(line))) }
        let value = String(decoding: line[(colon + 1)...], as: UTF8.self).trimmingBlanks
        guard HTTPField.isValidValue(value) else { throw .parts(.partHeader(Excerpt.of(line))) }
        append(HTTPField(name: name, value: value))
    }
}
