// SPDX-License-Identifier: MIT

// AVIF and HEIF files consist of boxes (ISO/IEC 14496-12 §4.2). The box `meta` names the primary item, lists the
// properties of all items, and associates items with properties (ISO/IEC 23008-12 §9.3).

extension HeaderBytes {
    /// Returns the size of the primary item: its property `ispe`.
    func sizeOfPrimaryItem() throws(Truncation) -> PixelSize? {
        var file = 0..<Int.max
        while let box = try nextBox(in: &file) {
            guard box.type == "meta" else { continue }
            // The content of `meta` must be complete.
            guard box.content.upperBound <= count else { throw Truncation() }
            return try sizeOfPrimaryItem(inMeta: box.content.dropFirst(4))
        }
        return nil
    }

    private func sizeOfPrimaryItem(inMeta content: Range<Int>) throws(Truncation) -> PixelSize? {
        var content = content
        var primary: Int?
        var properties: [PixelSize?] = []
        var associations: Range<Int>?
        while let box = try nextBox(in: &content) {
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
