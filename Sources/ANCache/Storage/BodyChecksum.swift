// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// The checksum of a body in a file: the checksum of those of its pieces, which are verified when they are read.
struct BodyChecksum: Sendable {
    /// The checksums of the complete pieces.
    private var complete: [UInt64] = []
    /// The checksum of the last piece, and the number of its bytes.
    private var last = (checksum: Checksum(), size: 0)

    /// The size of each piece except the last one.
    static let pieceSize = 256 << 10

    /// Adds bytes.
    mutating func update(_ bytes: borrowing RawSpan) {
        var offset = 0
        while offset < bytes.byteCount {
            let end = min(bytes.byteCount, offset + Self.pieceSize - last.size)
            last.checksum.update(bytes.extracting(offset..<end))
            last.size += end - offset
            offset = end
            guard last.size == Self.pieceSize else { return }
            complete.append(last.checksum.value)
            last = (Checksum(), 0)
        }
    }

    /// The checksums of all pieces so far.
    var pieces: [UInt64] { last.size == 0 ? complete : complete + [last.checksum.value] }

    /// The checksum of all bytes so far.
    var value: UInt64 {
        var record = RecordWriter()
        for piece in pieces { record.write(piece) }
        return Checksum.of(record.bytes.bytes)
    }
}
