// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension JSONDecoder {
    /// Decodes a document that the program did not write itself, and in which a number must not end the process; see
    /// ``JSONNumbers``.
    ///
    /// - Throws: `DecodingError`, also for UTF-16 and UTF-32, in which numbers are not inspected.
    package func decodeUntrusted<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        func corrupted(_ description: String) -> DecodingError {
            .dataCorrupted(.init(codingPath: [], debugDescription: description))
        }
        guard !JSONNumbers.isWide(data) else { throw corrupted("The document is not UTF-8.") }
        guard JSONNumbers.failure(in: data, isJSON5: allowsJSON5) == nil else {
            throw corrupted("A number exceeds the limits of the decoder.")
        }
        guard !CombiningRun.isTooLong(inJSON: data) else { throw corrupted("A string takes too long to compare.") }
        return try decode(type, from: data)
    }
}

extension CombiningRun {
    /// Whether a string of a JSON or JSON5 document takes too long to compare, as names of members are, and values of
    /// enumerations.
    package static func isTooLong(inJSON document: Data) -> Bool {
        let bytes = document.span
        guard mayBeTooLong(inJSON: bytes) else { return false }
        var run = CombiningRun()
        /// The first half of a surrogate pair that was escaped.
        var lead: UInt16?
        var index = 0
        while index < bytes.count, !run.wasTooLong {
            let byte = bytes[index]
            if byte >= 0x80 {
                let length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
                var value = UInt32(byte) & (0x7F >> UInt32(length))
                for next in (index + 1)..<max(index + 1, min(index + length, bytes.count)) {
                    value = value << 6 | UInt32(bytes[next] & 0x3F)
                }
                run.receive(UnicodeScalar(value) ?? "x")
                index += length
            } else if byte != UInt8(ascii: "\\") || index + 1 == bytes.count {
                run.receive(UnicodeScalar(byte))
                index += 1
            } else {
                index += 2
                switch bytes[index - 1] {
                case UInt8(ascii: "u"):
                    let unit = number(bytes, at: index)
                    if let lead, let unit, UTF16.isTrailSurrogate(unit) {
                        run.receive(UTF16.decode(UTF16.EncodedScalar([lead, unit])))
                    } else if let scalar = unit.flatMap({ UnicodeScalar($0) }) {
                        run.receive(scalar)
                    }
                    lead = unit.flatMap { UTF16.isLeadSurrogate($0) ? $0 : nil }
                    index += 4
                // A line break within a string of JSON5 is no part of it.
                case UInt8(ascii: "\r") where index < bytes.count && bytes[index] == UInt8(ascii: "\n"): index += 1
                case UInt8(ascii: "\r"), UInt8(ascii: "\n"): break
                case 0xE2: index += 2
                default: run.receive("x")
                }
            }
        }
        return run.wasTooLong
    }

    /// Whether a run may be too long: each such run has one of the bytes that are looked at here, as a part of a character or
    /// of an escape of at most six bytes.
    private static func mayBeTooLong(inJSON bytes: Span<UInt8>) -> Bool {
        for index in stride(from: minimumSize, to: bytes.count, by: minimumSize) {
            if bytes[index] >= 0x80 { return true }
            for near in (index - 5)...index where bytes[near] == UInt8(ascii: "\\") { return true }
        }
        return false
    }

    /// Returns the number of four hexadecimal digits; `nil` for others.
    private static func number(_ bytes: Span<UInt8>, at start: Int) -> UInt16? {
        var number = 0
        for index in start..<(start + 4) {
            guard index < bytes.count, let digit = Character(UnicodeScalar(bytes[index])).hexDigitValue else {
                return nil
            }
            number = number << 4 | digit
        }
        return UInt16(number)
    }
}

/// The numbers of a JSON or JSON5 document at which Foundation's decoder ends the process.
///
/// In both formats, this is a number with an exponent that is too long for `Decimal`, when an integer is decoded from it
/// and its value is 2^53 or more. In JSON5, it is also a number whose hexadecimal digits are followed by other characters
/// of numbers, as in `0x1e+`, or whose exponent has no digits.
package struct JSONNumbers {
    /// The first number at which the decoder would end the process.
    package struct Failure {
        /// The offset of the number in bytes.
        package let offset: Int
        /// Whether it is no number of JSON5, or a part of the document that the decoder may read in another way.
        package let isMalformed: Bool
    }

    /// Returns the first number at which the decoder would end the process; `nil` if there is none.
    package static func failure(in document: Data, isJSON5: Bool) -> Failure? {
        guard isJSON5 || containsLongNumber(document) else { return nil }
        var numbers = JSONNumbers(document, isJSON5: isJSON5)
        numbers.inspect()
        return numbers.failure
    }

    /// Returns whether Foundation's decoder reads a document as UTF-16 or UTF-32, which have a zero or a byte order mark at
    /// the beginning.
    package static func isWide(_ document: Data) -> Bool {
        document.prefix(4).contains { $0 == 0 || $0 >= 0xFE }
    }

    /// Returns the maximum number of arrays and objects around a value of a JSON5 document, up to the first failure.
    package static func depth(of document: Data) -> Int {
        var numbers = JSONNumbers(document, isJSON5: true)
        numbers.inspect()
        return numbers.maximumDepth
    }

    /// The number of characters that a number always may have. Foundation's `Decimal` fails from 129 decimal places, 167
    /// digits, or the exponent 255 on.
    private static let maximumLength = 128

    /// Returns whether more than ``maximumLength`` characters of numbers follow each other, possibly in a string. Looks at
    /// single bytes that any such sequence contains.
    private static func containsLongNumber(_ document: Data) -> Bool {
        let bytes = document.span
        var index = maximumLength
        while index < bytes.count {
            if isOfNumber(bytes[index]) {
                var start = index
                while start > 0, isOfNumber(bytes[start - 1]) { start -= 1 }
                while index + 1 < bytes.count, isOfNumber(bytes[index + 1]) { index += 1 }
                if index - start >= maximumLength { return true }
            }
            index += maximumLength
        }
        return false
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    private let bytes: [UInt8]
    private let isJSON5: Bool
    private var position = 0
    private var depth = 0
    private var maximumDepth = 0
    private var failure: Failure?

    private init(_ document: Data, isJSON5: Bool) {
        bytes = Array(document)
        self.isJSON5 = isJSON5
    }

    /// Inspects the document up to the first failure.
    private mutating func inspect() {
        while failure == nil, let byte = next {
            switch byte {
            case UInt8(ascii: "\""): skipString(until: byte)
            case UInt8(ascii: "'") where isJSON5: skipString(until: byte)
            case UInt8(ascii: "/") where isJSON5: skipComment()
            case _ where Self.isOfWord(byte): checkWord()
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                position += 1
                depth += 1
                maximumDepth = max(maximumDepth, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                position += 1
                depth -= 1
            default: position += 1
            }
        }
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipString(until quote: UInt8) {
        position += 1
        while failure == nil, let byte = next, byte != quote {
            if byte == UInt8(ascii: "\\") { skipEscape() } else { position += 1 }
        }
        position += 1
    }

    /// Skips an escape. The decoder skips the digits of one unseen, also a backslash among them.
    private mutating func skipEscape() {
        let digits =
            switch bytes[position...].dropFirst().first {
            case UInt8(ascii: "u"): 4
            case UInt8(ascii: "x") where isJSON5: 2
            default: 0
            }
        let end = position + 2 + digits
        guard end <= bytes.count || digits == 0,
            bytes[position...].dropFirst(2).prefix(digits).allSatisfy({ Character(UnicodeScalar($0)).isHexDigit })
        else { return failure = Failure(offset: position, isMalformed: true) }
        position = end
    }

    /// Skips a comment, or a slash that begins none. At the line separators of Unicode, a comment ends for JSON5, and not for
    /// the decoder.
    private mutating func skipComment() {
        position += 1
        switch next {
        case UInt8(ascii: "/"):
            while let byte = next, byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") {
                if byte == 0xE2,
                    [[0xE2, 0x80, 0xA8], [0xE2, 0x80, 0xA9]].contains(Array(bytes[position...].prefix(3)))
                {
                    return failure = Failure(offset: position, isMalformed: true)
                }
                position += 1
            }
        case UInt8(ascii: "*"):
            position =
                bytes[(position + 1)...].firstRange(of: [UInt8(ascii: "*"), UInt8(ascii: "/")])?.upperBound
                ?? bytes.count
        default: break
        }
    }

    /// Skips a name or number, and notes one at which the decoder would end the process.
    private mutating func checkWord() {
        let word = bytes[position...].prefix(while: Self.isOfWord)
        let isMalformed = isJSON5 && Self.isMalformed(word)
        if isMalformed || Self.exceedsDecimal(word) { failure = Failure(offset: position, isMalformed: isMalformed) }
        position = word.endIndex
    }

    /// Returns whether a word ends with a sign, or is a hexadecimal number without digits or with other characters.
    private static func isMalformed(_ word: ArraySlice<UInt8>) -> Bool {
        if word.last == UInt8(ascii: "+") || word.last == UInt8(ascii: "-") { return true }
        let number = word.drop { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }
        guard number.first == UInt8(ascii: "0"), number.dropFirst().first.map({ $0 | 0x20 }) == UInt8(ascii: "x") else {
            return false
        }
        let digits = number.dropFirst(2)
        return digits.isEmpty || !digits.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }

    /// Returns whether `Decimal` may be unable to hold a number that the decoder of an integer would read as one: from
    /// 2^53, the first integers that not all doubles distinguish, to those of 128 bits.
    private static func exceedsDecimal(_ word: ArraySlice<UInt8>) -> Bool {
        // A name of JSON5 begins with a letter.
        guard word.count > maximumLength, let first = word.first, isOfNumber(first), first | 0x20 != UInt8(ascii: "e"),
            word.contains(where: { $0 | 0x20 == UInt8(ascii: "e") })
        else { return false }
        guard let value = Double(String(decoding: word, as: UTF8.self)) else { return true }
        return (0x1p53..<0x1p128).contains(value.magnitude)
    }

    /// Returns whether a byte may be part of a name or number.
    package static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "$"):
            true
        default: false
        }
    }
}
