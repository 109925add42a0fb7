// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Parameters in an encodable form for `PropertyListEncoder`.
struct PropertyListTree: Encodable {
    private let value: Parameters

    /// Returns parameters encoded as a property list.
    static func write(
        _ parameters: Parameters, format: PropertyListRequestSerializer.Format
    ) throws(SerializationError) -> Data {
        switch parameters {
        case .dictionary, .array, .set: break
        case .string, .integer, .unsigned, .double, .bool, .date, .data, .raw, .null, .absent, .unsupported:
            throw .parameters(
                .notInPropertyList(path: "", reason: "the outermost value is neither a dictionary nor an array"))
        }
        var path: [PathStep] = []
        try check(parameters, isXML: format == .xml, path: &path)
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format == .xml ? .xml : .binary
        do {
            let list = try encoder.encode(PropertyListTree(value: parameters))
            guard format == .xml, list.contains(UInt8(ascii: "\r")) else { return list }
            // Parsers replace a carriage return that is not a reference by LF (XML 1.0 §2.11).
            return Data(
                list.split(separator: UInt8(ascii: "\r"), omittingEmptySubsequences: false).joined(
                    separator: "&#13;".utf8))
        } catch {
            throw .parameters(.encodable(path: "", reason: String(describing: error), underlying: error))
        }
    }

    /// Throws for values that property lists do not support.
    private static func check(
        _ value: Parameters, isXML: Bool, path: inout [PathStep]
    ) throws(SerializationError) {
        guard path.count <= Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
        switch value {
        case .dictionary(let entries):
            guard !isXML || entries.present.map(\.name) != ["CF$UID"] else {
                throw refusal(path, "readers of XML take a dictionary with the only name CF$UID for another type")
            }
            var names: Set<String> = []
            for entry in entries.present {
                path.append(.name(entry.name))
                guard names.insert(entry.name).inserted else { throw refusal(path, "its name occurs twice") }
                try check(.string(entry.name), isXML: isXML, path: &path)
                try check(entry.value, isXML: isXML, path: &path)
                path.removeLast()
            }
        case .array(let elements), .set(let elements):
            for (index, element) in elements.enumerated() {
                path.append(.index(index))
                try check(element, isXML: isXML, path: &path)
                path.removeLast()
            }
        case .string(let string):
            guard !isXML || string.unicodeScalars.allSatisfy(isRepresentableInXML) else {
                throw refusal(path, "XML cannot represent its control characters")
            }
        case .null, .absent: throw refusal(path, "property lists do not support null")
        case .raw: throw .parameters(.rawText(path: path.pathDescription))
        case .unsupported(let reason):
            throw .parameters(.unsupported(path: path.pathDescription, reason: reason))
        case .date(let date) where isXML:
            // For dates out of range the encoder would write a different date.
            _ = try Parameters.text(of: date) { path.pathDescription }
        case .date(let date):
            guard date.timeIntervalSinceReferenceDate.isFinite else {
                throw .parameters(.dateOutOfRange(path: path.pathDescription))
            }
        case .double, .integer, .unsigned, .bool, .data: break
        }
    }

    /// Whether XML 1.0 §2.2 allows a character: tab, LF and CR of the control characters, and not U+FFFE and U+FFFF.
    private static func isRepresentableInXML(_ character: Unicode.Scalar) -> Bool {
        switch character.value {
        case 0x9, 0xA, 0xD: true
        case let value: value >= 0x20 && value != 0xFFFE && value != 0xFFFF
        }
    }

    private static func refusal(_ path: [PathStep], _ reason: String) -> SerializationError {
        .parameters(.notInPropertyList(path: path.pathDescription, reason: reason))
    }

    func encode(to encoder: any Encoder) throws {
        switch value {
        case .dictionary(let entries):
            var container = encoder.container(keyedBy: Name.self)
            for entry in entries.present {
                try container.encode(PropertyListTree(value: entry.value), forKey: Name(stringValue: entry.name))
            }
        case .array(let elements), .set(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(PropertyListTree(value: element)) }
        case .string(let value), .raw(let value): try encode(value, to: encoder)
        case .integer(let value): try encode(value, to: encoder)
        case .unsigned(let value): try encode(value, to: encoder)
        case .double(let value): try encode(value, to: encoder)
        case .bool(let value): try encode(value, to: encoder)
        case .date(let value): try encode(value, to: encoder)
        case .data(let value): try encode(value, to: encoder)
        case .null, .absent, .unsupported:
            var container = encoder.singleValueContainer()
            try container.encodeNil()
        }
    }

    private func encode(_ value: some Encodable, to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
