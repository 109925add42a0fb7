// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// Rejects property lists that `PropertyListDecoder` cannot handle safely.
///
/// The decoder recurses to any depth, decodes a shared object of the binary format again for each reference to it, even
/// one from within the object, and traps at bytes that are not UTF-8, at years beyond its calendar, and at strings that
/// extend past the end. A date of the binary format that is not a number would trap where the program prints it, and keys
/// with a long run of combining characters would take minutes to compare.
package enum PropertyListGuard {
    /// The maximum depth. A value of unknown type is decoded by trying one type after the other, whose cost grows with
    /// the depth.
    static let maximumDepth = 64
    /// The maximum ratio between the decoded and the encoded size of a binary property list, whose objects may be
    /// shared.
    private static let maximumExpansion = 64
    /// The decoded size in bytes that is permitted for short property lists, too.
    private static let freeExpansion = 16 << 20
    /// The assumed size of a decoded value without its string or data in bytes, roughly what it takes in memory.
    private static let valueWeight = 16
    /// The maximum of the number of values times their depth, to which the decoder's time is proportional: for each
    /// byte of the document, and in any case.
    private static let (maximumWorkPerByte, freeWork) = (8, 100_000)
    /// The maximum number of objects of a binary property list to which nothing refers. The decoder allocates memory for
    /// them, too.
    private static let maximumUnused = 1 << 16

    /// Returns the property list if it is safe to decode, in UTF-8 if it is XML.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` if it is not.
    package static func checked(_ data: Data) throws(SerializationError) -> Data {
        if data.starts(with: Array("bplist0".utf8)) {
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
        // The decoder would parse other text as the OpenStep format.
        guard start == UInt8(ascii: "<") else { throw failure(.malformed, data) }
        try checkXML(bytes)
        return text
    }

    private static func utf8(_ data: Data) throws(SerializationError) -> Data {
        do throws(SerializationError) {
            return try XMLText.utf8(data)
        } catch {
            throw failure(.malformed, data)
        }
    }

    /// Checks the nesting of elements and the format of dates; everything else about XML is left to the decoder.
    ///
    /// Exactly the bytes that the decoder skips are skipped here, so that no elements are hidden from the check;
    /// constructs that property lists do not need are rejected.
    private static func checkXML(_ bytes: [UInt8]) throws(SerializationError) {
        guard (try? UTF8Span(validating: bytes.span)) != nil, !hasLongCombiningRun(bytes) else {
            throw failure(.malformed, Data(bytes))
        }
        var position = 0
        var depth = 0
        var isFirst = true
        while let tag = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = tag + 1
            let rest = bytes[position...]
            switch rest.first {
            case UInt8(ascii: "/"):
                depth -= 1
            case UInt8(ascii: "!") where rest.starts(with: "!--".utf8):
                position = end(of: "-->", in: bytes, from: tag + 4)
            case UInt8(ascii: "!") where rest.starts(with: "![CDATA[".utf8):
                position = end(of: "]]>", in: bytes, from: tag + 9)
            case UInt8(ascii: "!") where rest.starts(with: "!DOCTYPE".utf8):
                position = end(of: ">", in: bytes, from: tag + 9)
                guard !rest[..<position].contains(where: { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: "[") }) else {
                    throw failure(.malformed, Data(bytes))
                }
            case UInt8(ascii: "?") where isFirst:
                position = end(of: "?>", in: bytes, from: tag + 2)
            case UInt8(ascii: "?"), UInt8(ascii: "!"):
                throw failure(.malformed, Data(bytes))
            default:
                position = rest.firstIndex(of: UInt8(ascii: ">")) ?? bytes.count
                guard bytes[position - 1] != UInt8(ascii: "/") else { break }
                depth += 1
                guard !rest.starts(with: "date".utf8) || hasDate(bytes[position...].dropFirst()) else {
                    throw failure(.malformed, Data(bytes))
                }
            }
            isFirst = false
            guard depth >= 0 else { throw failure(.malformed, Data(bytes)) }
            guard depth <= maximumDepth else { throw failure(.tooDeep(limit: maximumDepth), Data(bytes)) }
        }
    }

    /// Returns whether the bytes begin with the content of a `date` element, such as `2001-02-03T04:05:06Z`; the year
    /// may be negative and has at most six digits.
    private static func hasDate(_ bytes: ArraySlice<UInt8>) -> Bool {
        let shape = bytes.prefix(24).prefix { $0 != UInt8(ascii: "<") }.map { byte in
            UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte ? UInt8(ascii: "0") : byte
        }
        let unsigned = shape.first == UInt8(ascii: "-") ? shape[1...] : shape[...]
        let year = unsigned.prefix { $0 == UInt8(ascii: "0") }
        return 1...6 ~= year.count && unsigned[year.endIndex...].elementsEqual("-00-00T00:00:00Z".utf8)
    }

    /// Returns whether a run of combining characters, some of which may be numeric references or in CDATA sections, is too
    /// long.
    private static func hasLongCombiningRun(_ bytes: [UInt8]) -> Bool {
        // Most lists have only ASCII characters.
        guard bytes.contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "#") }) else { return false }
        var bytes = bytes
        if bytes.contains(UInt8(ascii: "[")) {
            // The decoder joins the text of sections with that around them.
            for mark in ["<![CDATA[", "]]>"] { bytes = bytes.replacing(Array(mark.utf8), with: []) }
        }
        guard bytes.firstRange(of: Array("&#".utf8)) != nil else { return bytes.hasLongCombiningRun }
        var run = CombiningRun()
        var reference: String?
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            switch (scalar, reference) {
            case ("&", _): reference = ""
            case (";", let text?):
                let digits = text.dropFirst()
                let number = digits.first == "x" ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
                run.receive(number.flatMap(UnicodeScalar.init) ?? "x")
                reference = nil
            case (_, let text?) where text.utf8.count < 64: reference?.unicodeScalars.append(scalar)
            default:
                reference = nil
                run.receive(scalar)
            }
        }
        return run.wasTooLong
    }

    private static func end(of mark: String, in bytes: [UInt8], from start: Int) -> Int {
        guard start <= bytes.count, let range = bytes[start...].firstRange(of: Array(mark.utf8)) else {
            return bytes.count
        }
        return range.upperBound
    }

    private static func checkBinary(_ data: Data) throws(SerializationError) {
        guard let list = BinaryPropertyList(data) else { throw failure(.malformed, data) }
        // The state of an object: being visited, or visited with its depth, its decoded size and the number of values in
        // it. Only objects that the outermost one reaches have one.
        enum Visit { case active, finished(depth: Int, weight: Int, values: Int) }
        let maximumWeight = max(data.count * maximumExpansion, freeExpansion)
        let maximumWork = max(data.count * maximumWorkPerByte, freeWork)
        var visits: [Int: Visit] = [:]
        var path: [(object: BinaryPropertyList.Object, next: Int, depth: Int, weight: Int, values: Int)] = []
        // References are part of at most one object unless objects overlap; then their number could be quadratic.
        var references = 0

        func enter(_ object: BinaryPropertyList.Object) throws(SerializationError) {
            guard path.count < maximumDepth else { throw failure(.tooDeep(limit: maximumDepth), data) }
            references += object.references
            guard references <= maximumWeight / valueWeight else { throw failure(.expansion, data) }
            guard !list.hasLongCombiningRun(object) else { throw failure(.malformed, data) }
            visits[object.start] = .active
            path.append((object, 0, 1, valueWeight + object.length, 1))
        }

        guard let top = list.object(list.top) else { throw failure(.malformed, data) }
        try enter(top)
        while let current = path.last {
            let last = path.count - 1
            guard current.next < current.object.references else {
                visits[current.object.start] = .finished(
                    depth: current.depth, weight: current.weight, values: current.values)
                path.removeLast()
                continue
            }
            guard let child = list.reference(current.next, of: current.object).flatMap(list.object) else {
                throw failure(.malformed, data)
            }
            switch visits[child.start] {
            case nil:
                // The child is examined again, as a known one, after it was visited.
                try enter(child)
            case .active:
                throw failure(.cycle, data)
            case .finished(let depth, let weight, let values):
                path[last].next += 1
                path[last].depth = max(current.depth, depth + 1)
                path[last].weight = current.weight + weight
                path[last].values = current.values + values
                guard path[last].weight <= maximumWeight,
                    path[last].values <= maximumWork / (path.count + path[last].depth)
                else { throw failure(.expansion, data) }
                guard path.count + depth <= maximumDepth else {
                    throw failure(.tooDeep(limit: maximumDepth), data)
                }
            }
        }
        guard list.count - 1 - references <= maximumUnused else { throw failure(.expansion, data) }
    }

    private static func failure(_ reason: SerializationError.Failure.PropertyListReason, _ data: Data)
        -> SerializationError
    {
        .propertyList(.init(.propertyList(reason), excerpt: Excerpt.of(data)))
    }
}
