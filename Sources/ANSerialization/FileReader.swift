// SPDX-License-Identifier: MIT

import Glibc

/// A regular file, open for reading from its start; closed with its last reference.
///
/// FoundationEssentials reads files whole or maps them, and a mapped file that shrinks kills the process: hence read(2).
final class FileReader {
    /// The size when the file was opened.
    let size: Int64
    private let path: String
    private let descriptor: Int32

    init(_ path: String) throws(SerializationError) {
        // Opening a FIFO without O_NONBLOCK would wait for its writer; on regular files the flag means nothing.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Self.failure(path) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            let error = Self.failure(path)
            close(descriptor)
            throw error
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw .multipart(.file(path: path, reason: "it is not a regular file"))
        }
        self.path = path
        self.descriptor = descriptor
        size = Int64(status.st_size)
    }

    deinit {
        close(descriptor)
    }

    /// The next bytes, at most `count`; none at the end.
    func read(upTo count: Int) throws(SerializationError) -> ArraySlice<UInt8> {
        var buffer = [UInt8](repeating: 0, count: count)
        while true {
            let length = unsafe Glibc.read(descriptor, &buffer, count)
            if length >= 0 { return buffer.prefix(length) }
            guard errno == EINTR else { throw Self.failure(path) }
        }
    }

    /// What errno says of the last call.
    private static func failure(_ path: String) -> SerializationError {
        .multipart(.file(path: path, reason: unsafe String(cString: strerror(errno))))
    }
}
