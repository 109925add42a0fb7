// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

extension FileDescriptor {
    /// Opens a file for reading. A pipe of that name does not block.
    init(reading path: String) throws(SystemError) {
        // O_RDONLY and O_NONBLOCK.
        try self.init(opening: path, flags: 0o4000)
    }

    /// Reads bytes at an offset.
    ///
    /// - Throws: `EIO` if the file ends before the last of them; otherwise the error of pread(2).
    func data(at offset: Int64, count: Int) throws(SystemError) -> Data {
        var result = Data(count: count)
        var span = result.mutableBytes
        var filled = try read(into: &span, at: offset)
        while filled < count {
            var piece = Data(count: count - filled)
            var rest = piece.mutableBytes
            let read = try read(into: &rest, at: offset + Int64(filled))
            guard read > 0 else { throw SystemError(call: "pread", code: 5) }
            result.replaceSubrange(filled..<filled + read, with: piece.prefix(read))
            filled += read
        }
        return result
    }
}
