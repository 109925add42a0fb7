// SPDX-License-Identifier: MIT

import ANSerialization

/// A writer of binary property lists, including ones that no encoder would produce.
enum BinaryPropertyListMaker {
    /// Returns a property list of objects, of which the first is the outermost; the string “a” is added as the last
    /// object.
    ///
    /// - Parameter starts: The offsets of the objects from the start of the first; `nil` to place them one after the
    ///   other.
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

    /// Returns an array of up to 14 objects.
    static func array(of objects: [Int]) -> [UInt8] {
        [0xA0 | UInt8(objects.count)] + objects.flatMap { bytes($0, count: 2) }
    }

    /// Returns the first bytes of an object with a length of four bytes.
    static func head(_ kind: UInt8, length: Int) -> [UInt8] {
        [kind << 4 | 0xF, 0x12] + bytes(length, count: 4)
    }

    /// Returns the least significant bytes of an integer in big-endian order.
    static func bytes(_ integer: Int, count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: integer >> (8 * $0)) }
    }
}
