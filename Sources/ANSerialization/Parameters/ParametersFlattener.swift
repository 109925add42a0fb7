// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A receiver of the name-value pairs of flattened parameters.
protocol PairSink {
    /// Appends a component to a name, in the sink's representation. A name is built once and used for several pairs.
    func append(_ piece: String, to name: inout ByteBuffer)
    /// Returns a name in readable form.
    func plainName(_ name: ByteBuffer) -> String
    /// Adds a pair; a value of `nil` means a name without `=`.
    mutating func add(_ name: borrowing ByteBuffer, _ value: String?)
    /// Adds a pair whose value is already encoded.
    mutating func add(_ name: borrowing ByteBuffer, raw value: String)
    /// Adds a pair whose value is bytes, and returns whether the sink supports that.
    mutating func add(_ name: borrowing ByteBuffer, data: Data) -> Bool
}

extension PairSink {
    mutating func add(_ name: borrowing ByteBuffer, data: Data) -> Bool { false }
}

/// Converts a tree of parameters into name-value pairs for a sink.
struct ParametersFlattener<Sink: PairSink> {
    private(set) var sink: Sink
    private let options: URLEncodedFormEncoder
    /// The name of the current value.
    private var name = ByteBuffer(capacity: 128)
    // The syntax of names in the sink's representation.
    private var opening = ByteBuffer()
    private var closing = ByteBuffer()
    private var element = ByteBuffer()

    init(_ sink: Sink, options: URLEncodedFormEncoder, name: String = "") {
        self.sink = sink
        self.options = options
        sink.append(name, to: &self.name)
        sink.append("]", to: &closing)
        switch options.keyPaths {
        case .brackets, .custom: sink.append("[", to: &opening)
        case .dots:
            sink.append(".", to: &opening)
            closing.truncate(to: 0)
        }
        sink.append("[]", to: &element)
    }

    /// Adds the pairs of a value at a depth.
    mutating func flatten(_ value: Parameters, depth: Int = 0) throws(SerializationError) {
        guard depth <= Parameters.maximumDepth else { throw .parameters(.tooDeep(limit: Parameters.maximumDepth)) }
        switch value {
        case .dictionary(let entries): try flatten(entries, depth: depth)
        case .array(let elements): try flatten(elements, depth: depth)
        case .set(let elements): try flatten(set: elements, depth: depth)
        case .string(let string): sink.add(name, string)
        case .integer(let integer): sink.add(name, String(integer))
        case .unsigned(let integer): sink.add(name, String(integer))
        case .double(let double):
            sink.add(name, try Parameters.text(of: double, keepsFraction: options.keepsZeroFractions) { path })
        case .bool(let bool):
            sink.add(name, options.usesBooleanWords ? "\(bool)" : bool ? "1" : "0")
        // One level deeper, so that the recursion ends for a closure that returns its argument.
        case .date(let date): try flatten(try options.dates.encode(date) { path }, depth: depth + 1)
        case .data(let data):
            guard !sink.add(name, data: data) else { return }
            try flatten(try options.data.encode(data) { path }, depth: depth + 1)
        case .raw(let text): sink.add(name, raw: text)
        case .absent: break
        case .unsupported(let reason): throw .parameters(.unsupported(path: path, reason: reason))
        case .null:
            switch options.nulls {
            case .dropKey: break
            case .bareKey: sink.add(name, nil)
            case .text(let text): sink.add(name, text)
            }
        }
    }

    private var path: String { sink.plainName(name) }

    private mutating func flatten(_ entries: [Parameters.Entry], depth: Int) throws(SerializationError) {
        var entries = entries
        if !options.keys.isIdentity {
            for index in entries.indices { entries[index].name = options.keys.encode(entries[index].name) }
        }
        if options.sortsNames, !entries.areSorted { entries.sort { $0.name < $1.name } }
        let length = name.count
        for entry in entries {
            if depth == 0 {
                sink.append(entry.name, to: &name)
            } else if case .custom(let encode) = options.keyPaths {
                sink.append(encode(entry.name), to: &name)
            } else {
                name.append(opening)
                sink.append(entry.name, to: &name)
                name.append(closing)
            }
            try flatten(entry.value, depth: depth + 1)
            name.truncate(to: length)
        }
    }

    private mutating func flatten(_ elements: [Parameters], depth: Int) throws(SerializationError) {
        let length = name.count
        for (index, value) in elements.enumerated() {
            switch options.arrays {
            case .brackets: name.append(element)
            case .bare: break
            case .indexed: sink.append("[\(index)]", to: &name)
            case .custom(let encode):
                let own = name
                name.truncate(to: 0)
                sink.append(encode(sink.plainName(own), index), to: &name)
                try flatten(value, depth: depth + 1)
                name = own
                continue
            }
            try flatten(value, depth: depth + 1)
            name.truncate(to: length)
        }
    }

    /// Adds the elements of a set in the order of their encoded form, so that equal sets give equal text.
    private mutating func flatten(set elements: [Parameters], depth: Int) throws(SerializationError) {
        var groups: [[PairList.Pair]] = []
        for element in elements {
            var group = ParametersFlattener<PairList>(PairList(), options: options, name: path)
            try group.flatten(element, depth: depth + 1)
            groups.append(group.sink.pairs)
        }
        if options.sortsNames {
            groups.sort { left, right in
                left.lexicographicallyPrecedes(right) { ($0.value ?? "", $0.name) < ($1.value ?? "", $1.name) }
            }
        }
        for pair in groups.joined() {
            var name = ByteBuffer()
            sink.append(pair.name, to: &name)
            if let value = pair.value, pair.isRaw { sink.add(name, raw: value) } else { sink.add(name, pair.value) }
        }
    }
}

extension [Parameters.Entry] {
    fileprivate var areSorted: Bool {
        indices.dropFirst().allSatisfy { self[$0 - 1].name <= self[$0].name }
    }
}

/// A sink that collects unencoded pairs.
struct PairList: PairSink {
    private(set) var pairs: [Pair] = []
    private let keepsData: Bool

    init(keepsData: Bool = false) {
        self.keepsData = keepsData
    }

    struct Pair {
        var name: String
        var value: String?
        var isRaw = false
        var data: Data?

        /// Returns the content of a multipart field; `nil` if the text cannot be encoded.
        func content(in encoding: String.Encoding) -> Data? {
            data ?? (value ?? "").data(using: encoding)
        }
    }

    func append(_ piece: String, to name: inout ByteBuffer) {
        name.append(piece)
    }

    func plainName(_ name: ByteBuffer) -> String {
        name.text
    }

    mutating func add(_ name: borrowing ByteBuffer, _ value: String?) {
        pairs.append(Pair(name: name.text, value: value))
    }

    mutating func add(_ name: borrowing ByteBuffer, raw value: String) {
        pairs.append(Pair(name: name.text, value: value, isRaw: true))
    }

    mutating func add(_ name: borrowing ByteBuffer, data: Data) -> Bool {
        if keepsData { pairs.append(Pair(name: name.text, data: data)) }
        return keepsData
    }
}

/// A sink that writes pairs as the text of a query or form.
struct PairText: PairSink {
    private var buffer = ByteBuffer(capacity: 512)
    private let inNames: URLEncodedFormEncoder.AllowedCharacters
    private let inValues: URLEncodedFormEncoder.AllowedCharacters
    private let spaceIsPlus: Bool
    private var isFirst = true

    init(options: URLEncodedFormEncoder) {
        spaceIsPlus = options.encodesSpacesAsPlus
        inValues = spaceIsPlus ? options.allowedCharacters.removing(UInt8(ascii: "+")) : options.allowedCharacters
        inNames = inValues.removing(UInt8(ascii: "="))
    }

    var text: String { buffer.text }

    func append(_ piece: String, to name: inout ByteBuffer) {
        name.append(escaping: piece, allowed: inNames, spaceIsPlus: spaceIsPlus)
    }

    func plainName(_ name: ByteBuffer) -> String {
        var plain = ByteBuffer()
        var rest = name.bytes
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                plain.append(value)
                rest = rest.dropFirst(2)
            } else {
                plain.append(byte == UInt8(ascii: "+") && spaceIsPlus ? UInt8(ascii: " ") : byte)
            }
        }
        return plain.text
    }

    mutating func add(_ name: borrowing ByteBuffer, _ value: String?) {
        begin(name)
        guard let value else { return }
        buffer.append(UInt8(ascii: "="))
        append(value)
    }

    mutating func add(_ name: borrowing ByteBuffer, raw value: String) {
        begin(name)
        buffer.append(UInt8(ascii: "="))
        buffer.append(value)
    }

    /// Appends the encoded text of a value.
    mutating func append(_ value: String) {
        buffer.append(escaping: value, allowed: inValues, spaceIsPlus: spaceIsPlus)
    }

    private mutating func begin(_ name: borrowing ByteBuffer) {
        if !isFirst { buffer.append(UInt8(ascii: "&")) }
        isFirst = false
        buffer.append(name)
    }
}

/// A component of a path from a value to a nested value.
enum PathStep: Hashable, Sendable {
    case name(String)
    case index(Int)

    init(_ key: some CodingKey) {
        self = key.intValue.map(PathStep.index) ?? .name(key.stringValue)
    }
}

extension [PathStep] {
    /// The path in Swift syntax, such as `users[3].name`.
    var pathDescription: String {
        var text = ""
        for step in self {
            switch step {
            case .name(let name): text += text.isEmpty ? name : "." + name
            case .index(let index): text += "[\(index)]"
            }
        }
        return text
    }
}
