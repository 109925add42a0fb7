// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A value of JSON, whose members have no order.
indirect enum JSONNode: Codable, Equatable {
    case null
    case bool(Bool)
    /// A number. ``canonical(_:)`` has none, since this does not keep all digits.
    case number(Double)
    case text(String)
    case array([JSONNode])
    case object([String: JSONNode])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .text(value)
        } else if let value = try? container.decode([JSONNode].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONNode].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .text(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    /// Returns JSON with its members in the order of their names, and any other text unchanged. Numbers stay as they are
    /// written.
    static func canonical(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let first = text.utf8.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
            let value = try? JSONDecoder().decode(Self.self, from: Data(quotingNumbers(text))),
            let data = try? encoder.encode(value)
        else { return text }
        return String(decoding: unquotingNumbers(data), as: UTF8.self)
    }

    /// Returns JSON with its numbers as strings that begin with `n`. All others, and names, begin with `s`.
    private static func quotingNumbers(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        var rest = [UInt8](text.utf8)[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "\"") {
                let string = string(rest)
                result += "\"s".utf8 + string.dropFirst()
                rest = rest[string.endIndex...]
            } else if byte == UInt8(ascii: "-") || isDigit(byte) {
                let number = rest.prefix { isDigit($0) || "+-.eE".utf8.contains($0) }
                result += "\"n".utf8 + number + "\"".utf8
                rest = rest[number.endIndex...]
            } else {
                result.append(rest.removeFirst())
            }
        }
        return result
    }

    private static func unquotingNumbers(_ text: Data) -> [UInt8] {
        var result: [UInt8] = []
        var rest = [UInt8](text)[...]
        while let byte = rest.first {
            if byte == UInt8(ascii: "\"") {
                let string = string(rest)
                let content = string.dropFirst(2)
                result += string.dropFirst().first == UInt8(ascii: "n") ? content.dropLast() : [byte] + content
                rest = rest[string.endIndex...]
            } else {
                result.append(rest.removeFirst())
            }
        }
        return result
    }

    /// The string of JSON with which a text begins, with its quotation marks.
    private static func string(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var end = text.startIndex + 1
        while end < text.endIndex, text[end] != UInt8(ascii: "\"") { end += text[end] == UInt8(ascii: "\\") ? 2 : 1 }
        return text[..<min(end + 1, text.endIndex)]
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// Calls a closure with each string, and its place, such as `a.0.b`.
    func visitTexts(_ place: String, _ body: (_ place: String, _ text: String) -> Void) {
        switch self {
        case .text(let text): body(place, text)
        case .array(let elements):
            for (index, element) in elements.enumerated() { element.visitTexts("\(place).\(index)", body) }
        case .object(let members):
            for (name, member) in members.sorted(by: { $0.key < $1.key }) {
                member.visitTexts("\(place).\(name)", body)
            }
        case .null, .bool, .number: break
        }
    }
}
