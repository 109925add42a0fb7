// SPDX-License-Identifier: MIT

import FoundationEssentials

/// Takes the pairs that a tree of parameters becomes.
protocol PairSink {
    /// Adds a pair: the bytes of its name, and its value, nil for a name without `=`.
    mutating func add(_ name: [UInt8], _ value: String?)
    /// Adds a pair whose value is encoded already.
    mutating func add(_ name: [UInt8], raw value: String)
    /// Adds a pair whose value is bytes, if it takes such.
    mutating func add(_ name: [UInt8], data: Data) -> Bool
}

extension PairSink {
    mutating func add(_ name: [UInt8], data: Data) -> Bool { false }
}

/// Turns a tree of parameters into pairs, in their order, and hands them to a sink.
struct ParametersFlattener<Sink: PairSink> {
    private(set) var sink: Sink
    private let options: URLEncodedFormEncoder
    /// The name of the value being flattened.
    private var name: [UInt8]

    init(_ sink: Sink, options: URLEncodedFormEncoder, name: [UInt8] = []) {
        self.sink = sink
        self.options = options
        self.name = name
    }

    /// Adds the pairs of a value `depth` levels down.
    mutating func flatten(_ value: Parameters, depth: Int = 0) throws(SerializationError) {
        guard depth <= Parameters.maximumDepth else { throw .parameters(.tooDeep(limit: Parameters.maximumDepth)) }
        switch value {
        case .dictionary(let entries): try flatten(entries, depth: depth)
        case .array(let elements): try flatten(elements, depth: depth)
        case .set(let elements): try flatten(set: elements, depth: depth)
        case .string(let string): sink.add(name, string)
        case .integer(let integer): sink.add(name, String(integer))
        case .unsigned(let integer): sink.add(name, String(integer))
        case .double(let double): sink.add(name, try Parameters.text(of: double) { path })
        case .bool(let bool):
            switch options.booleans {
            case .numeric: sink.add(name, bool ? "1" : "0")
            case .literal: sink.add(name, bool ? "true" : "false")
            }
        // One level down, so that a closure which returns what it was given comes to an end.
        case .date(let date): try flatten(try options.dates.encode(date) { path }, depth: depth + 1)
        case .data(let data):
            guard !sink.add(name, data: data) else { return }
            try flatten(try options.data.encode(data) { path }, depth: depth + 1)
        case .raw(let text): sink.add(name, raw: text)
        case .null:
            switch options.nulls {
            case .dropKey: break
            case .emptyValue: sink.add(name, "")
            case .bareKey: sink.add(name, nil)
            case .null: sink.add(name, "null")
            case .text(let text): sink.add(name, text)
            }
        }
    }

    private var path: String { String(decoding: name, as: UTF8.self) }

    private mutating func flatten(_ entries: [Parameters.Entry], depth: Int) throws(SerializationError) {
        var entries = entries
        if !options.keys.isIdentity {
            for index in entries.indices { entries[index].name = options.keys.encode(entries[index].name) }
        }
        if options.order == .sorted { entries.sort { $0.name < $1.name } }
        let length = name.count
        for entry in entries {
            if depth == 0 {
                name.append(contentsOf: entry.name.utf8)
            } else {
                switch options.keyPaths {
                case .brackets:
                    name.append(UInt8(ascii: "["))
                    name.append(contentsOf: entry.name.utf8)
                    name.append(UInt8(ascii: "]"))
                case .dots:
                    name.append(UInt8(ascii: "."))
                    name.append(contentsOf: entry.name.utf8)
                case .custom(let encode): name.append(contentsOf: encode(entry.name).utf8)
                }
            }
            try flatten(entry.value, depth: depth + 1)
            name.removeLast(name.count - length)
        }
    }

    private mutating func flatten(_ elements: [Parameters], depth: Int) throws(SerializationError) {
        let length = name.count
        for (index, element) in elements.enumerated() {
            switch options.arrays {
            case .brackets: name.append(contentsOf: "[]".utf8)
            case .bare: break
            case .indexed: name.append(contentsOf: "[\(index)]".utf8)
            case .custom(let encode):
                let own = name
                name = Array(encode(String(decoding: own, as: UTF8.self), index).utf8)
                try flatten(element, depth: depth + 1)
                name = own
                continue
            }
            try flatten(element, depth: depth + 1)
            name.removeLast(name.count - length)
        }
    }

    /// Sorted by what each element becomes, so that the same set is always the same text.
    private mutating func flatten(set elements: [Parameters], depth: Int) throws(SerializationError) {
        var groups: [[PairList.Pair]] = []
        for element in elements {
            var group = ParametersFlattener<PairList>(PairList(), options: options, name: name)
            try group.flatten(element, depth: depth + 1)
            groups.append(group.sink.pairs)
        }
        if options.order == .sorted {
            groups.sort { left, right in
                left.lexicographicallyPrecedes(right) { ($0.value ?? "", $0.name) < ($1.value ?? "", $1.name) }
            }
        }
        for pair in groups.joined() {
            let name = Array(pair.name.utf8)
            if let value = pair.value, pair.isRaw { sink.add(name, raw: value) } else { sink.add(name, pair.value) }
        }
    }
}

/// Collects pairs as they are.
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

        /// The bytes of a multipart field; nil when the encoding lacks a character.
        func content(in encoding: String.Encoding) -> Data? {
            data ?? (value ?? "").data(using: encoding)
        }
    }

    mutating func add(_ name: [UInt8], _ value: String?) {
        pairs.append(Pair(name: String(decoding: name, as: UTF8.self), value: value))
    }

    mutating func add(_ name: [UInt8], raw value: String) {
        pairs.append(Pair(name: String(decoding: name, as: UTF8.self), value: value, isRaw: true))
    }

    mutating func add(_ name: [UInt8], data: Data) -> Bool {
        if keepsData { pairs.append(Pair(name: String(decoding: name, as: UTF8.self), data: data)) }
        return keepsData
    }
}

/// Writes pairs as the text of a query or form.
struct PairText: PairSink {
    private(set) var bytes: [UInt8] = []
    private let inNames: URLEncodedFormEncoder.AllowedCharacters
    private let inValues: URLEncodedFormEncoder.AllowedCharacters
    private let space: [UInt8]
    private var isFirst = true

    init(options: URLEncodedFormEncoder) {
        let isPlus = options.spaces == .plus
        inValues = isPlus ? options.allowedCharacters.removing(UInt8(ascii: "+")) : options.allowedCharacters
        inNames = inValues.removing(UInt8(ascii: "="))
        space = Array((isPlus ? "+" : "%20").utf8)
    }

    mutating func add(_ name: [UInt8], _ value: String?) {
        begin(name)
        guard let value else { return }
        bytes.append(UInt8(ascii: "="))
        escape(value.utf8, allowed: inValues)
    }

    mutating func add(_ name: [UInt8], raw value: String) {
        begin(name)
        bytes.append(UInt8(ascii: "="))
        bytes.append(contentsOf: value.utf8)
    }

    private mutating func begin(_ name: [UInt8]) {
        if !isFirst { bytes.append(UInt8(ascii: "&")) }
        isFirst = false
        escape(name, allowed: inNames)
    }

    mutating func escape(_ text: some Sequence<UInt8>, allowed: URLEncodedFormEncoder.AllowedCharacters) {
        for byte in text {
            if allowed.contains(byte) {
                bytes.append(byte)
            } else if byte == UInt8(ascii: " ") {
                bytes.append(contentsOf: space)
            } else {
                bytes.append(UInt8(ascii: "%"))
                bytes.append(Self.hexDigit(byte >> 4))
                bytes.append(Self.hexDigit(byte & 15))
            }
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
