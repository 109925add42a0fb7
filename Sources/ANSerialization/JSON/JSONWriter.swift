// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A writer that encodes parameters as JSON (RFC 8259).
struct JSONWriter {
    private let options: JSONRequestSerializer.WritingOptions
    private let dates: Parameters.DateEncoding
    private let data: Parameters.DataEncoding
    private var bytes: [UInt8] = []
    /// The names and indices that lead to the current value.
    private var path: [PathStep] = []

    init(
        options: JSONRequestSerializer.WritingOptions = [], dates: Parameters.DateEncoding = .iso8601,
        data: Parameters.DataEncoding = .base64
    ) {
        self.options = options
        self.dates = dates
        self.data = data
    }

    /// The JSON text written so far.
    var result: Data { Data(bytes) }

    /// Writes a value.
    ///
    /// `extraDepth` counts the closures that replaced the value by another one; it ends the recursion of a closure that
    /// returns its argument.
    mutating func write(_ value: Parameters, extraDepth: Int = 0) throws(SerializationError) {
        guard path.count + extraDepth <= Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
        switch value {
        case .dictionary(let entries):
            let present = entries.present
            try writeObject(options.contains(.sortedKeys) ? present.sorted { $0.name < $1.name } : present)
        case .array(let elements), .set(let elements):
            try writeArray(elements)
        case .string(let string): write(string: string)
        case .integer(let integer): write(text: String(integer))
        case .unsigned(let integer): write(text: String(integer))
        case .double(let double): write(text: try Parameters.text(of: double) { path.pathDescription })
        case .bool(let bool): write(text: bool ? "true" : "false")
        case .date(let date):
            try write(try dates.encode(date) { path.pathDescription }, extraDepth: extraDepth + 1)
        case .data(let bytes):
            try write(try data.encode(bytes) { path.pathDescription }, extraDepth: extraDepth + 1)
        case .null, .absent: write(text: "null")
        case .raw: throw .parameters(.rawText(path: path.pathDescription))
        }
    }

    private mutating func writeObject(_ entries: [Parameters.Entry]) throws(SerializationError) {
        bytes.append(UInt8(ascii: "{"))
        for (index, entry) in entries.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            path.append(.name(entry.name))
            beginLine()
            write(string: entry.name)
            write(text: options.contains(.prettyPrinted) ? ": " : ":")
            try write(entry.value)
            path.removeLast()
        }
        if !entries.isEmpty { beginLine() }
        bytes.append(UInt8(ascii: "}"))
    }

    private mutating func writeArray(_ elements: [Parameters]) throws(SerializationError) {
        bytes.append(UInt8(ascii: "["))
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            path.append(.index(index))
            beginLine()
            try write(element)
            path.removeLast()
        }
        if !elements.isEmpty { beginLine() }
        bytes.append(UInt8(ascii: "]"))
    }

    /// Begins a new line, indented by the length of the path, if pretty-printing.
    private mutating func beginLine() {
        guard options.contains(.prettyPrinted) else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * path.count))
    }

    private mutating func write(text: String) {
        bytes += text.utf8
    }

    /// Writes a string with the escapes that RFC 8259 §7 requires, and escaped slashes if requested.
    private mutating func write(string: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "/") where options.contains(.escapesSlashes): write(text: "\\/")
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
