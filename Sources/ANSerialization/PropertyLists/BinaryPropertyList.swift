// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// The structure of a binary property list: which objects refer to which, and the lengths of strings and data.
struct BinaryPropertyList {
    let count: Int
    let top: Int
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let offsetTable: Int

    /// Parses the trailer in the last 32 bytes; `nil` if it is inconsistent.
    init?(_ data: Data) {
        bytes = Array(data)
        // Shorter data is not recognized as the binary format by the decoder.
        guard bytes.count > 40 else { return nil }
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

    /// Returns the position and size of an object; `nil` if there is no object with the index, or it is malformed.
    func object(_ index: Int) -> Object? {
        guard index < count else { return nil }
        let entry = offsetTable + index * offsetSize
        guard let start = Self.integer(bytes[entry..<(entry + offsetSize)]), start < offsetTable else { return nil }
        guard bytes[start] >> 4 != Self.date || hasDate(at: start + 1) else { return nil }
        let kind = Kind(rawValue: bytes[start] >> 4)
        guard let kind else { return Object(start: start, position: start, references: 0, length: 0) }
        var position = start + 1
        var count = Int(bytes[start] & 0xF)
        if count == 0xF {
            guard position < offsetTable, bytes[position] >> 4 == 1, bytes[position] & 0xF <= 3 else { return nil }
            let size = 1 << Int(bytes[position] & 0xF)
            guard position + 1 + size <= offsetTable,
                let long = Self.integer(bytes[(position + 1)..<(position + 1 + size)])
            else { return nil }
            count = long
            position += 1 + size
        }
        let room = offsetTable - position
        switch kind {
        case .data, .text:
            return count <= room ? Object(start: start, position: position, references: 0, length: count) : nil
        case .wideText:
            guard count <= room / 2 else { return nil }
            return Object(start: start, position: position, references: 0, length: count * 2)
        case .array, .set:
            guard count <= room / referenceSize else { return nil }
            return Object(start: start, position: position, references: count, length: 0)
        case .dictionary:
            // There are as many keys as values.
            guard count <= room / referenceSize / 2 else { return nil }
            return Object(start: start, position: position, references: count * 2, length: 0)
        }
    }

    /// Returns whether an object is a string with a run of combining characters that is too long to compare.
    func hasLongCombiningRun(_ object: Object) -> Bool {
        guard bytes[object.start] >> 4 == Kind.wideText.rawValue else { return false }
        let units = (0..<object.length / 2).lazy.map { index in
            let position = object.position + 2 * index
            return UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1])
        }
        // All combining characters are beyond U+02FF.
        return units.contains { $0 >= 0x300 }
            && String(decoding: units, as: UTF16.self).unicodeScalars.hasLongCombiningRun
    }

    /// Returns the list with another string in place of a short one in ASCII, and that string, which differs in the last
    /// letter, and which no string of the list contains; `nil` if the list does not have the string.
    func replacing(_ text: String) -> (list: Data, substitute: String)? {
        let forms = [text.utf8.map { [$0] }, text.utf8.map { [0, $0] }].map { Array($0.joined()) }
        var objects: [(form: Int, end: Int)] = []
        for object in (0..<count).lazy.compactMap(object) {
            let kinds: [Kind] = [.text, .wideText]
            guard let form = kinds.firstIndex(where: { $0.rawValue == bytes[object.start] >> 4 }),
                bytes[object.position..<(object.position + object.length)].elementsEqual(forms[form])
            else { continue }
            objects.append((form, object.position + object.length))
        }
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        guard !objects.isEmpty,
            let letter = letters.first(where: { letter in
                forms.allSatisfy { bytes.firstRange(of: $0.dropLast() + [letter]) == nil }
            })
        else { return nil }
        var list = bytes
        for object in objects { list[object.end - 1] = letter }
        return (Data(list), String(decoding: forms[0].dropLast() + [letter], as: UTF8.self))
    }

    /// Returns whether the bytes at a position are a date that Foundation can print: it traps at NaN, at infinity, and at
    /// years beyond its calendar.
    private func hasDate(at position: Int) -> Bool {
        guard position + 8 <= offsetTable else { return false }
        let pattern = bytes[position..<(position + 8)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return abs(Double(bitPattern: pattern)) <= Self.maximumDate
    }

    /// The upper half of the first byte of a date.
    private static let date: UInt8 = 0x3
    /// The distance of the earliest and the latest date from 2001 in seconds, about 980,000 years.
    private static let maximumDate = 3.1e13

    /// Returns the index of an object that a container refers to; `nil` if it does not fit into `Int`.
    func reference(_ index: Int, of container: Object) -> Int? {
        let start = container.position + index * referenceSize
        return Self.integer(bytes[start..<(start + referenceSize)])
    }

    /// Returns a big-endian integer; `nil` if it does not fit into `Int`.
    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int? {
        var value: UInt64 = 0
        for byte in bytes { value = value << 8 | UInt64(byte) }
        return Int(exactly: value)
    }

    /// The position and size of an object, validated to be within the data.
    struct Object {
        /// The position of the object, by which it is recognized: several indices may have the same one.
        let start: Int
        /// The position of the object's references or bytes.
        fileprivate let position: Int
        /// The number of references to other objects.
        let references: Int
        /// The number of bytes of a string or data.
        let length: Int
    }

    /// The kinds of objects with an explicit size; all other kinds have at most 16 bytes.
    private enum Kind: UInt8 {
        case data = 0x4
        case text = 0x5
        /// A string in UTF-16.
        case wideText = 0x6
        case array = 0xA
        case set = 0xC
        case dictionary = 0xD
    }
}
