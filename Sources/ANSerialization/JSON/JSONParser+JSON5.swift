// SPDX-License-Identifier: MIT

// The JSON5 extensions to JSON: sections 2 to 8 of spec.json5.org.

extension JSONParser {
    /// Parses a string in single quotes, or a number in any notation.
    mutating func parseJSON5Value() throws(SerializationError) -> JSONValue {
        if try currentByte() == UInt8(ascii: "'") { return .string(try parseJSON5String()) }
        let start = position
        var isNegative = false
        switch try currentByte() {
        case UInt8(ascii: "-"):
            isNegative = true
            position += 1
        case UInt8(ascii: "+"): position += 1
        default: break
        }
        switch try currentByte() {
        case UInt8(ascii: "I"): return try parse(literal: "Infinity", as: .double(isNegative ? -.infinity : .infinity))
        case UInt8(ascii: "N"): return try parse(literal: "NaN", as: .double(.nan))
        default: break
        }
        let digits = position
        let next = position + 1 < bytes.count ? bytes[position + 1] | 0x20 : 0
        let isHexadecimal = bytes[position] == UInt8(ascii: "0") && next == UInt8(ascii: "x")
        if isHexadecimal { position += 2 }
        while position < bytes.count, isPartOfNumber(bytes[position], isHexadecimal) { position += 1 }
        guard position > digits else { throw failure(.unexpectedByte(bytes[position])) }
        let text = String(decoding: bytes[digits..<position], as: UTF8.self)
        guard let number = Self.number(text, isNegative) else { throw failure(.numberOutOfRange, at: start) }
        return number
    }

    private func isPartOfNumber(_ byte: UInt8, _ isHexadecimal: Bool) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return true
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"):
            return isHexadecimal || byte | 0x20 == UInt8(ascii: "e")
        case UInt8(ascii: "."): return !isHexadecimal
        case UInt8(ascii: "+"), UInt8(ascii: "-"):
            return !isHexadecimal && bytes[position - 1] | 0x20 == UInt8(ascii: "e")
        default: return false
        }
    }

    /// Returns the number of an unsigned text; `nil` if it is malformed or too large.
    private static func number(_ text: String, _ isNegative: Bool) -> JSONValue? {
        let sign = isNegative ? "-" : ""
        if text.hasPrefix("0x") || text.hasPrefix("0X") {
            let digits = text.dropFirst(2)
            return Int64(sign + digits, radix: 16).map(JSONValue.integer)
                ?? (isNegative ? nil : UInt64(digits, radix: 16).map(JSONValue.unsigned))
        }
        let hasLeadingZero = text.utf8.count > 1 && text.first == "0" && text.dropFirst().first?.isNumber == true
        guard !hasLeadingZero, text != "." else { return nil }
        if let integer = Int64(sign + text) { return .integer(integer) }
        if !isNegative, let integer = UInt64(text) { return .unsigned(integer) }
        // JSON5 permits a leading or trailing decimal point, which `Double` does not parse.
        var full = text
        if full.first == "." { full = "0" + full }
        full = full.replacing(".e", with: ".0e").replacing(".E", with: ".0e")
        if full.last == "." { full += "0" }
        guard let double = Double(sign + full), double.isFinite else { return nil }
        return .double(double)
    }

    /// Parses a string in single quotes, with the escapes of JSON and JSON5.
    private mutating func parseJSON5String() throws(SerializationError) -> String {
        let opening = position
        position += 1
        var content: [UInt8] = []
        while true {
            let byte = try currentByte()
            position += 1
            switch byte {
            case UInt8(ascii: "'"): return try text(of: content.span, at: opening)
            case UInt8(ascii: "\\"):
                content += try parseEscape()
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                throw failure(.unexpectedByte(byte), at: position - 1)
            default: content.append(byte)
            }
        }
    }

    /// Returns the bytes of an escape defined by JSON5; `nil` if it is undefined.
    mutating func parseJSON5Escape(_ byte: UInt8) throws(SerializationError) -> [UInt8]? {
        switch byte {
        case UInt8(ascii: "'"): return [byte]
        case UInt8(ascii: "v"): return [11]
        case UInt8(ascii: "0"): return [0]
        case UInt8(ascii: "\n"): return []
        case UInt8(ascii: "\r"):
            if try currentByte() == UInt8(ascii: "\n") { position += 1 }
            return []
        case UInt8(ascii: "x"):
            let digits = [try currentByte(), position + 1 < bytes.count ? bytes[position + 1] : 0]
            let isHexadecimal = digits.allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
            guard isHexadecimal, let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else {
                return nil
            }
            position += 2
            return Array(String(UnicodeScalar(value)).utf8)
        default:
            return nil
        }
    }

    /// Parses a name that is unquoted or in single quotes.
    mutating func parseJSON5Name() throws(SerializationError) -> String {
        if try currentByte() == UInt8(ascii: "'") { return try parseJSON5String() }
        let start = position
        while position < bytes.count, isPartOfName(bytes[position], isFirst: position == start) { position += 1 }
        guard position > start else { throw failure(.unexpectedByte(try currentByte())) }
        return try text(of: bytes.span.extracting(start..<position), at: start)
    }

    private func isPartOfName(_ byte: UInt8, isFirst: Bool) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"),
            UInt8(ascii: "$"), 0x80...:
            true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): !isFirst
        default: false
        }
    }

    /// Skips a comment, or whitespace that JSON does not permit, and returns whether there was any.
    mutating func skipJSON5Blank() throws(SerializationError) -> Bool {
        let rest = bytes[position...]
        if rest.first == 11 || rest.first == 12 {
            position += 1
        } else if rest.starts(with: [0xC2, 0xA0]) {
            position += 2
        } else if rest.starts(with: [0xEF, 0xBB, 0xBF]) || rest.starts(with: [0xE2, 0x80, 0xA8])
            || rest.starts(with: [0xE2, 0x80, 0xA9])
        {
            position += 3
        } else if rest.starts(with: Array("//".utf8)) {
            position = rest.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") } ?? bytes.count
        } else if rest.starts(with: Array("/*".utf8)) {
            position += 2
            while !bytes[position...].starts(with: Array("*/".utf8)) {
                _ = try currentByte()
                position += 1
            }
            position += 2
        } else {
            return false
        }
        return true
    }
}
