// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A value of JSON, whose members have no order.
indirect enum JSONNode: Codable, Equatable {
    case null
    case bool(Bool)
    /// A number, of which a `Double` would not keep all digits.
    case number(Decimal)
    case text(String)
    case array([JSONNode])
    case object([String: JSONNode])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Decimal.self) {
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

    /// Returns JSON with its members in the order of their names, and any other text unchanged.
    static func canonical(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let first = text.utf8.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
            let value = try? JSONDecoder().decode(Self.self, from: Data(text.utf8)),
            let data = try? encoder.encode(value)
        else { return text }
        return String(decoding: data, as: UTF8.self)
    }

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
