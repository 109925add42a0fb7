// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials
import Glibc

/// Writes files that may contain a private key, readable only by their owner.
enum PEMFile {
    static func write(_ data: Data, to path: String) throws(SystemError) {
        let file = try FileDescriptor(opening: path, flags: O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        try file.writeAll(data.bytes)
        try file.close()
    }
}
