// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The beginning of a file, read at arbitrary offsets.
///
/// Offsets come from the file, so none is trusted: reading outside of the data throws.
struct HeaderBytes {
    private let data: Data

    /// The file ends before the bytes that were to be read.
    struct Truncation: Error {}

    init(_ data: Data) {
        self.data = data
    }

    /// The number of bytes.
    var count: Int { data.count }

    /// Returns a byte.
    func byte(at offset: Int) throws(Truncation) -> Int {
        guard offset >= 0, offset < data.count else { throw Truncation() }
        return Int(data[data.startIndex + offset])
    }

    /// Returns a big-endian integer of 2 bytes.
    func big16(at offset: Int) throws(Truncation) -> Int {
        try byte(at: offset) << 8 | byte(at: offset + 1)
    }

    /// Returns a big-endian integer of 4 bytes.
    func big32(at offset: Int) throws(Truncation) -> Int {
        try big16(at: offset) << 16 | big16(at: offset + 2)
    }

    /// Returns a little-endian integer of 2 bytes.
    func little16(at offset: Int) throws(Truncation) -> Int {
        try byte(at: offset) | byte(at: offset + 1) << 8
    }

    /// Returns a little-endian integer of 3 bytes.
    func little24(at offset: Int) throws(Truncation) -> Int {
        try little16(at: offset) | byte(at: offset + 2) << 16
    }

    /// Returns a little-endian integer of 4 bytes.
    func little32(at offset: Int) throws(Truncation) -> Int {
        try little16(at: offset) | little16(at: offset + 2) << 16
    }

    /// Returns four characters, the type of a chunk or box.
    func text(at offset: Int) throws(Truncation) -> String {
        var text = ""
        for index in 0..<4 { text.unicodeScalars.append(Unicode.Scalar(UInt8(try byte(at: offset + index)))) }
        return text
    }

    /// Whether the data contain the given bytes at an offset.
    func has(_ bytes: [UInt8], at offset: Int) -> Bool {
        guard offset >= 0, offset <= data.count - bytes.count else { return false }
        return data[(data.startIndex + offset)...].starts(with: bytes)
    }
}

// AVIF and HEIF files consist of boxes (ISO/IEC 14496-12 §4.2). The box `meta` names the primary item, lists the
// properties of all items, and associates items with properties (ISO/IEC 23008-12 §9.3).

extension HeaderBytes {
    /// Returns the size of the primary item: its property `ispe`.
    func sizeOfPrimaryItem() throws(Truncation) -> PixelSize? {
        var file = 0..<Int.max
        while let box = try nextBox(in: &file) {
            guard box.type == "meta" else { continue }
            return try sizeOfPrimaryItem(inMeta: box.content.dropFirst(4))
        }
        return nil
    }

    private func sizeOfPrimaryItem(inMeta content: Range<Int>) throws(Truncation) -> PixelSize? {
        var content = content
        var primary: Int?
        var properties: [PixelSize?] = []
        var associations: Range<Int>?
        // The box may extend to the end of the file, of which only the beginning may have arrived.
        while primary == nil || associations == nil, let box = try nextBox(in: &content) {
            switch box.type {
            case "pitm":
                let start = box.content.lowerBound
                primary = try byte(at: start) == 0 ? big16(at: start + 4) : big32(at: start + 4)
            case "iprp":
                var boxes = box.content
                while let box = try nextBox(in: &boxes) {
                    if box.type == "ipco" { properties = try sizes(in: box.content) }
                    if box.type == "ipma" { associations = box.content }
                }
            default:
                break
            }
        }
        guard let primary, let associations else { return nil }
        return try propertyIndices(of: primary, in: associations).lazy
            .compactMap { properties.indices.contains($0 - 1) ? properties[$0 - 1] : nil }.first
    }

    /// Returns the sizes among the properties in `ipco`, and `nil` for the others.
    private func sizes(in content: Range<Int>) throws(Truncation) -> [PixelSize?] {
        var (content, sizes): (Range<Int>, [PixelSize?]) = (content, [])
        while sizes.count < Self.maximumBoxes, let box = try nextBox(in: &content) {
            let start = box.content.lowerBound
            sizes.append(
                box.type == "ispe" ? PixelSize(width: try big32(at: start + 4), height: try big32(at: start + 8)) : nil)
        }
        return sizes
    }

    /// Returns the indices, from 1, that `ipma` associates with an item.
    private func propertyIndices(of item: Int, in content: Range<Int>) throws(Truncation) -> [Int] {
        var offset = content.lowerBound
        let (version, flags) = (try byte(at: offset), try byte(at: offset + 3))
        let entries = try big32(at: offset + 4)
        offset += 8
        for _ in 0..<min(entries, Self.maximumBoxes) {
            let id = try version == 0 ? big16(at: offset) : big32(at: offset)
            offset += version == 0 ? 2 : 4
            let associations = try byte(at: offset)
            offset += 1
            let width = flags & 1 == 0 ? 1 : 2
            if id == item {
                // The highest bit says whether the property is essential.
                return try (0..<associations).map { index throws(Truncation) in
                    try width == 1 ? byte(at: offset + index) & 0x7F : big16(at: offset + 2 * index) & 0x7FFF
                }
            }
            offset += associations * width
        }
        return []
    }

    /// Returns the next box in a range and removes it from the range; `nil` at the end of the range.
    private func nextBox(in range: inout Range<Int>) throws(Truncation) -> (type: String, content: Range<Int>)? {
        guard range.count >= 8 else { return nil }
        let start = range.lowerBound
        var size = try big32(at: start)
        let type = try text(at: start + 4)
        var head = 8
        if size == 1 {
            let high = try big32(at: start + 8)
            size = try high << 32 | big32(at: start + 12)
            head = 16
        } else if size == 0 {
            // The box extends to the end of the file.
            size = range.count
        }
        guard size >= head, size <= range.count else { return nil }
        range = (start + size)..<range.upperBound
        return (type, (start + head)..<(start + size))
    }

    private static let maximumBoxes = 10_000
}
