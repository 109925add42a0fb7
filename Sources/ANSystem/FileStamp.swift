// SPDX-License-Identifier: MIT

import Glibc

/// The identity, size and modification time of a file, which distinguish a state of the file from a later one.
package struct FileStamp: Hashable, Sendable {
    private let path: String
    private var device: UInt64 = 0
    private var inode: UInt64 = 0
    private var size: Int64 = 0
    private var seconds = 0
    private var nanoseconds = 0

    /// Reads the state of the file at this path, which need not exist.
    package init(path: String) {
        self.path = path
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return }
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = Int(status.st_mtim.tv_sec)
        nanoseconds = Int(status.st_mtim.tv_nsec)
    }

    /// Whether the file is unchanged since the stamp was created.
    package var isCurrent: Bool { FileStamp(path: path) == self }
}
