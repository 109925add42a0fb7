// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// Refuses property lists that `PropertyListDecoder` cannot bear: it follows nesting by recursion, as deep as it goes, and
/// decodes an object of the binary format anew for each reference to it, also one from within itself.
package enum PropertyListGuard {
    static let maximumDepth = 512
    /// How many values a byte of a binary property list may stand for on average: objects are shared, but not for ever.
    private static let maximumExpansion = 16

    /// The property list, in UTF-8 when it is one of XML.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)``.
    package static func checked(_ data: Data) throws(SerializationError) -> Data {
        if data.starts(with: Array("bplist".utf8)) {
            try checkBinary(data)
            return data
        }
        let text = try utf8(data)
        let bytes = Array(text)
        let start = bytes.first { byte in
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), 0xEF, 0xBB, 0xBF: false
            default: true
            }
        }
        // The decoder would take it for the format of OpenStep.
        guard start == UInt8(ascii: "<") else { throw problem(.malformed, data) }
        try checkXML(bytes)
        return text
    }

    private static func utf8(_ data: Data) throws(SerializationError) -> Data {
        do throws(SerializationError) {
            return try XMLText.utf8(data)
        } catch {
            throw problem(.malformed, data)
        }
    }

    /// Counts open elements; all else about XML is left to the decoder.
    private static func checkXML(_ bytes: [UInt8]) throws(SerializationError) {
        var position = 0
        var depth = 0
        while let tag = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = tag + 1
            let rest = bytes[position...]
            switch rest.first {
            case UInt8(ascii: "/"):
                depth -= 1
            case UInt8(ascii: "!") where rest.starts(with: Array("!--".utf8)):
                position = end(of: "-->", in: bytes, from: tag + 4)
            case UInt8(ascii: "!") where rest.starts(with: Array("![CDATA[".utf8)):
                position = end(of: "]]>", in: bytes, from: tag + 9)
            case UInt8(ascii: "?"), UInt8(ascii: "!"):
                break
            default:
                let close = rest.firstIndex(of: UInt8(ascii: ">")) ?? bytes.count
                position = close
                if bytes[close - 1] != UInt8(ascii: "/") { depth += 1 }
            }
            guard depth <= maximumDepth else { throw problem(.tooDeep(limit: maximumDepth), Data(bytes)) }
        }
    }

    private static func end(of mark: String, in bytes: [UInt8], from start: Int) -> Int {
        guard start <= bytes.count, let range = bytes[start...].firstRange(of: Array(mark.utf8)) else {
            return bytes.count
        }
        return range.upperBound
    }

    private static func checkBinary(_ data: Data) throws(SerializationError) {
        guard let list = BinaryPropertyList(data) else { throw problem(.malformed, data) }
        // What is known of an object: nothing, that it is being visited, or how deep it is and how many values it holds.
        enum Knowledge { case none, visiting, known(depth: Int, values: Int) }
        var knowledge = [Knowledge](repeating: .none, count: list.count)
        var path: [(object: Int, children: [Int], next: Int, depth: Int, values: Int)] = []

        func enter(_ object: Int) throws(SerializationError) {
            guard path.count < maximumDepth else { throw problem(.tooDeep(limit: maximumDepth), data) }
            guard let children = list.children(of: object) else { throw problem(.malformed, data) }
            knowledge[object] = .visiting
            path.append((object, children, 0, 1, 1))
        }

        try enter(list.top)
        while let current = path.last {
            let last = path.count - 1
            guard current.next < current.children.count else {
                knowledge[current.object] = .known(depth: current.depth, values: current.values)
                path.removeLast()
                continue
            }
            let child = current.children[current.next]
            guard knowledge.indices.contains(child) else { throw problem(.malformed, data) }
            switch knowledge[child] {
            case .none:
                // The child is looked at again, as a known one, when it was visited.
                try enter(child)
            case .visiting:
                throw problem(.cycle, data)
            case .known(let depth, let values):
                path[last].next += 1
                path[last].depth = max(current.depth, depth + 1)
                path[last].values = current.values &+ values
                guard path[last].values <= max(data.count, 64) * maximumExpansion else {
                    throw problem(.expansion, data)
                }
                guard path.count + depth <= maximumDepth else {
                    throw problem(.tooDeep(limit: maximumDepth), data)
                }
            }
        }
    }

    private static func problem(_ reason: SerializationError.PropertyListProblem.Reason, _ data: Data)
        -> SerializationError
    {
        .propertyList(.init(reason: reason, excerpt: Excerpt.of(data)))
    }
}

/// The skeleton of a property list in the binary format: which object refers to which.
private struct BinaryPropertyList {
    let count: Int
    let top: Int
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let offsetTable: Int

    /// Reads the trailer, the last 32 bytes; nil when it contradicts itself.
    init?(_ data: Data) {
        bytes = Array(data)
        guard bytes.count >= 40 else { return nil }
        let trailer = bytes.count - 32
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard 1...8 ~= offsetSize, 1...8 ~= referenceSize,
            let count = Self.integer(bytes[(trailer + 8)..<(trailer + 16)]),
            let top = Self.integer(bytes[(trailer + 16)..<(trailer + 24)]),
            let table = Self.integer(bytes[(trailer + 24)..<(trailer + 32)]),
            top < count, table < trailer, count <= (trailer - table) / offsetSize
        else { return nil }
        self.count = count
        self.top = top
        offsetTable = table
    }

    /// The objects that an array, set or dictionary refers to; nil for a malformed one.
    func children(of object: Int) -> [Int]? {
        let entry = offsetTable + object * offsetSize
        guard let start = Self.integer(bytes[entry..<(entry + offsetSize)]), start < offsetTable else { return nil }
        let kind = bytes[start] >> 4
        guard kind == 0xA || kind == 0xC || kind == 0xD else { return [] }
        var position = start + 1
        var length = Int(bytes[start] & 0xF)
        if length == 0xF {
            guard position < offsetTable, bytes[position] >> 4 == 1, bytes[position] & 0xF <= 3 else { return nil }
            let size = 1 << Int(bytes[position] & 0xF)
            guard position + 1 + size <= offsetTable,
                let long = Self.integer(bytes[(position + 1)..<(position + 1 + size)])
            else { return nil }
            length = long
            position += 1 + size
        }
        let room = (offsetTable - position) / referenceSize
        // A dictionary has as many keys as values.
        guard length <= (kind == 0xD ? room / 2 : room) else { return nil }
        let references = kind == 0xD ? length * 2 : length
        var children: [Int] = []
        children.reserveCapacity(references)
        for index in 0..<references {
            let at = position + index * referenceSize
            guard let child = Self.integer(bytes[at..<(at + referenceSize)]) else { return nil }
            children.append(child)
        }
        return children
    }

    /// A big-endian integer; nil when an `Int` does not hold it.
    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int? {
        var value: UInt64 = 0
        for byte in bytes { value = value << 8 | UInt64(byte) }
        return Int(exactly: value)
    }
}
