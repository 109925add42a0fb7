// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A writer that encodes parameters as JSON (RFC 8259).
struct JSONWriter {
    private let formatting: JSONEncoder.OutputFormatting
    /// The encoder whose strategies apply.
    private let encoder: JSONEncoder
    private var bytes: [UInt8] = []
    /// The names, as in the parameters, and indices that lead to the current value.
    private var path: [PathStep] = []
    /// The number of closures of the encoder in whose result the current value is.
    private var customDepth = 0

    init(formatting: JSONEncoder.OutputFormatting = [], encoder: JSONEncoder = JSONCoding.standard.encoder) {
        self.formatting = encoder.outputFormatting.union(formatting)
        self.encoder = encoder
    }

    /// The JSON text written so far.
    var result: Data { Data(bytes) }

    /// Writes a value.
    mutating func write(_ value: Parameters) throws(SerializationError) {
        switch value {
        case .dictionary(let entries):
            let members = try members(of: entries.present)
            try writeObject(formatting.contains(.sortedKeys) ? members.sorted { $0.name < $1.name } : members)
        case .array(let elements), .set(let elements):
            try writeArray(elements)
        case .string(let string): write(string: string)
        case .integer(let integer): write(text: String(integer))
        case .unsigned(let integer): write(text: String(integer))
        case .double(let double):
            if !double.isFinite, case .convertToString = encoder.nonConformingFloatEncodingStrategy {
                try write(encoding: double)
            } else {
                write(text: try Parameters.text(of: double) { path.pathDescription })
            }
        case .bool(let bool): write(text: bool ? "true" : "false")
        case .date(let date):
            switch encoder.dateEncodingStrategy {
            case .iso8601: write(string: try ISO8601Date.text(of: date) { path.pathDescription })
            case .custom(let encode): try write { try encode(date, $0) }
            default: try write(encoding: date)
            }
        case .data(let data):
            switch encoder.dataEncodingStrategy {
            case .base64: write(string: data.base64EncodedString())
            case .custom(let encode): try write { try encode(data, $0) }
            default: try write(encoding: data)
            }
        case .null, .absent: write(text: "null")
        case .raw: throw .parameters(.rawText(path: path.pathDescription))
        case .unsupported(let reason):
            throw .parameters(.unsupported(path: path.pathDescription, reason: reason))
        }
    }

    /// Writes the text of the encoder for a scalar.
    private mutating func write(encoding value: some Encodable) throws(SerializationError) {
        do {
            bytes += try encoder.encode(value)
        } catch {
            let reason = (error as? EncodingError)?.reason ?? String(describing: error)
            throw .parameters(.encodable(path: path.pathDescription, reason: reason, underlying: error))
        }
    }

    /// Writes what a closure of the encoder encodes at the current path. A result that the closure receives again is as
    /// deep as one that is nested.
    private mutating func write(_ encode: (any Encoder) throws -> Void) throws(SerializationError) {
        customDepth += 1
        defer { customDepth -= 1 }
        guard path.count + customDepth <= Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
        let value: Parameters
        do {
            let target = ParametersEncoder(path: path.map { NameKey($0) }, depth: 0, userInfo: encoder.userInfo)
            try encode(target)
            value = try target.node.parameters(depth: path.count)
        } catch let error as SerializationError {
            throw error
        } catch {
            let reason = (error as? EncodingError)?.reason ?? String(describing: error)
            throw .parameters(.encodable(path: path.pathDescription, reason: reason, underlying: error))
        }
        try write(value)
    }

    /// An entry, and the name that the encoder's strategy makes of its own.
    private typealias Member = (name: String, entry: Parameters.Entry)

    private func members(of entries: [Parameters.Entry]) throws(SerializationError) -> [Member] {
        if case .useDefaultKeys = encoder.keyEncodingStrategy { return entries.map { ($0.name, $0) } }
        let keys = path.map { NameKey($0) }
        var members: [Member] = []
        var positions: [String: Int] = [:]
        do {
            for entry in entries {
                let name = entry.isData ? entry.name : try encoder.name(of: entry.name, below: keys)
                if let position = positions[name], members[position].entry.name != entry.name {
                    // As with `JSONEncoder`, the last of several names counts for which the strategy makes the same.
                    members[position].entry = entry
                } else {
                    positions[name] = members.count
                    members.append((name, entry))
                }
            }
            return members
        } catch {
            throw .parameters(.encodable(path: path.pathDescription, reason: "\(error)", underlying: error))
        }
    }

    /// Throws an error if the arrays and objects around the current one have used up the permitted levels.
    private func checkDepth() throws(SerializationError) {
        guard path.count < Parameters.maximumDepth else {
            throw .parameters(.tooDeep(limit: Parameters.maximumDepth))
        }
    }

    private mutating func writeObject(_ members: [Member]) throws(SerializationError) {
        try checkDepth()
        bytes.append(UInt8(ascii: "{"))
        for (index, member) in members.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            path.append(.name(member.entry.name))
            beginLine()
            write(string: member.name)
            write(text: formatting.contains(.prettyPrinted) ? ": " : ":")
            try write(member.entry.value)
            path.removeLast()
        }
        if !members.isEmpty { beginLine() }
        bytes.append(UInt8(ascii: "}"))
    }

    private mutating func writeArray(_ elements: [Parameters]) throws(SerializationError) {
        try checkDepth()
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
        guard formatting.contains(.prettyPrinted) else { return }
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * path.count))
    }

    private mutating func write(text: String) {
        bytes += text.utf8
    }

    /// Writes a string with the escapes that RFC 8259 §7 requires.
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

extension EncodingError {
    /// The description of the encoder.
    fileprivate var reason: String? {
        if case .invalidValue(_, let context) = self { context.debugDescription } else { nil }
    }
}

extension JSONEncoder {
    /// Returns the name of a key by the strategy for keys.
    fileprivate func name(of name: String, below path: [NameKey]) throws -> String {
        if case .custom(let convert) = keyEncodingStrategy { return convert(path + [NameKey(name)]).stringValue }
        // Foundation's conversion is not public, but the encoder applies it.
        guard case .object(let members) = try JSONParser.parse(encode(SingleName(name: name)), options: []) else {
            return name
        }
        return members.keys.first ?? name
    }
}

/// An object whose only member has a name.
private struct SingleName: Encodable {
    let name: String

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: NameKey.self)
        try container.encode(true, forKey: NameKey(name))
    }
}

/// A name or index as a coding key.
private struct NameKey: CodingKey {
    let stringValue: String
    var intValue: Int?

    init(_ name: String) { stringValue = name }

    init(_ step: PathStep) {
        switch step {
        case .name(let name): stringValue = name
        case .index(let index):
            stringValue = "Index \(index)"
            intValue = index
        }
    }

    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { self.init(.index(intValue)) }
}
