// SPDX-License-Identifier: MIT

package import FoundationEssentials
package import HTTPTypes
import RawStructuredFieldValues

/// A member of a structured field, as far as the library reads them (RFC 9651 §3.3), without its parameters.
package enum StructuredValue: Hashable, Sendable {
    case integer(Int64)
    case boolean(Bool)
    case bytes(Data)
    /// A value of another type, or an inner list.
    case other

    fileprivate init(_ member: ItemOrInnerList) {
        guard case .item(let item) = member else {
            self = .other
            return
        }
        switch item.rfc9651BareItem {
        case .integer(let number): self = .integer(number)
        case .bool(let value): self = .boolean(value)
        case .undecodedByteSequence(let text):
            // A sender may leave out the padding (RFC 9651 §4.2.7).
            let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
            self = Data(base64Encoded: text + padding).map { .bytes($0) } ?? .other
        case .decimal, .string, .token, .date, .displayString: self = .other
        }
    }
}

extension HTTPFields {
    /// Returns the value of a structured field that is an item; `nil` if it is missing or malformed.
    package func structuredItem(_ name: HTTPField.Name) -> StructuredValue? {
        parsed(name) { try .item($0.parseItemFieldValue()) }.map { StructuredValue($0) }
    }

    /// Returns the members of a structured field that is a dictionary; `nil` if it is missing or malformed, when the
    /// whole field must be ignored (RFC 9651 §4.2). The last member with a name wins.
    package func structuredDictionary(_ name: HTTPField.Name) -> [String: StructuredValue]? {
        parsed(name) { try $0.parseDictionaryFieldValue() }.map { members in
            Dictionary(members.map { ($0.0, StructuredValue($0.1)) }) { $1 }
        }
    }

    /// Parses the lines of a field as one value.
    private func parsed<Value>(
        _ name: HTTPField.Name, _ parse: (inout StructuredFieldValueParser<[UInt8]>) throws -> Value
    ) -> Value? {
        guard contains(name) else { return nil }
        var parser = StructuredFieldValueParser(Array(self[values: name].joined(separator: ", ").utf8))
        return try? parse(&parser)
    }
}
