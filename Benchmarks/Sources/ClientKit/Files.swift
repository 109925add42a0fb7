// SPDX-License-Identifier: MIT

import Glibc

/// A file that is written sequentially.
package struct OutputFile: Sendable {
    package let path: String
    private let descriptor: Int32

    package init(path: String) throws {
        self.path = path
        descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Failure("\(path) cannot be written: \(String(cString: strerror(errno)))") }
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            guard count >= 0 else { throw Failure("write to \(path): \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }

    package func close() {
        _ = Glibc.close(descriptor)
    }
}

/// A file that is read sequentially.
package struct InputFile: Sendable {
    package let size: Int
    private let path: String
    private let descriptor: Int32

    package init(path: String) throws {
        self.path = path
        descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        var information = stat()
        guard descriptor >= 0, fstat(descriptor, &information) == 0 else {
            throw Failure("\(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        size = information.st_size
    }

    /// Reads into the buffer and returns the number of bytes, 0 at the end.
    package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        guard count >= 0 else { throw Failure("read from \(path): \(String(cString: strerror(errno)))") }
        return count
    }

    package func close() {
        _ = Glibc.close(descriptor)
    }
}
