// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Writes parameters as compact JSON (RFC 8259).
struct JSONWriter {
    private let sortsKeys: Bool
    private var bytes: [UInt8] = []
    /// The names and indices that lead to the value being written.
    private var path: [PathStep] = []

    private init(sortsKeys: Bool) {
        self.sortsKeys = sortsKeys
    }

    static func write(_ parameters: Parameters, sortsKeys: Bool = false) throws(SerializationError) -> Data {
        var writer = JSONWriter(sortsKeys: sortsKeys)
        try writer.write(parameters)
        return Data(writer.bytes)
    }

    private mutating func write(_ value: Parameters) throws(SerializationError) {
        guard path.count <= Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
        switch value {
        case .dictionary(let entries):
            try writeObject(sortsKeys ? entries.sorted { $0.name < $1.name } : entries)
        case .array(let elements), .set(let elements):
            try writeArray(elements)
        case .string(let string): write(string: string)
        case .integer(let integer): write(text: String(integer))
        case .unsigned(let integer): write(text: String(integer))
        case .double(let double): write(text: try Parameters.text(of: double) { path.pathDescription })
        case .bool(let bool): write(text: bool ? "true" : "false")
        case .date(let date):
            let text = try Parameters.text(of: date) { path.pathDescription }
            write(string: "\(text.date)T\(text.time)Z")
        case .null: write(text: "null")
        }
    }

    private mutating func writeObject(_ entries: [Parameters.Entry]) throws(SerializationError) {
        bytes.append(UInt8(ascii: "{"))
        for (index, entry) in entries.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            write(string: entry.name)
            bytes.append(UInt8(ascii: ":"))
            path.append(.name(entry.name))
            try write(entry.value)
            path.removeLast()
        }
        bytes.append(UInt8(ascii: "}"))
    }

    private mutating func writeArray(_ elements: [Parameters]) throws(SerializationError) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            path.append(.index(index))
            try write(element)
            path.removeLast()
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func write(text: String) {
        bytes += text.utf8
    }

    /// Escapes what RFC 8259 §7 requires and nothing else; a slash stays a slash.
    private mutating func write(string: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "\n"): write(text: "\\n")
            case UInt8(ascii: "\r"): write(text: "\\r")
            case UInt8(ascii: "\t"): write(text: "\\t")
            case 0..<0x20: write(text: (byte < 16 ? "\\u000" : "\\u00") + String(byte, radix: 16))
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
