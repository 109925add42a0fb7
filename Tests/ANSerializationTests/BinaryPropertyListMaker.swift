// SPDX-License-Identifier: MIT

import ANSerialization

/// Writes property lists in the binary format, also such as no program would write.
enum BinaryPropertyListMaker {
    /// A property list of objects, of which the first is outermost; a string “a” is added as the last one.
    ///
    /// - Parameter starts: Where the objects begin, counted from the first one's start; one behind the other when nil.
    static func list(_ objects: [[UInt8]], starts: [Int]? = nil) -> [UInt8] {
        let objects = objects + [[0x51, 0x61]]
        var ends: [Int] = [0]
        for object in objects { ends.append(ends[ends.count - 1] + object.count) }
        let starts = starts ?? Array(ends.dropLast())
        var body = Array("bplist00".utf8) + objects.joined()
        let table = body.count
        body += starts.flatMap { bytes($0 + 8, count: 4) }
        body += [0, 0, 0, 0, 0, 0, 4, 2]
        return body + bytes(starts.count, count: 8) + bytes(0, count: 8) + bytes(table, count: 8)
    }

    /// An array of up to 14 objects.
    static func array(of objects: [Int]) -> [UInt8] {
        [0xA0 | UInt8(objects.count)] + objects.flatMap { bytes($0, count: 2) }
    }

    /// The first bytes of an object with a length of four bytes.
    static func head(_ kind: UInt8, length: Int) -> [UInt8] {
        [kind << 4 | 0xF, 0x12] + bytes(length, count: 4)
    }

    /// The integer's last bytes, the highest first.
    static func bytes(_ integer: Int, count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: integer >> (8 * $0)) }
    }
}
