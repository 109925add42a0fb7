// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
package import FoundationEssentials

extension ResponseBody {
    /// Writes the rest of the body to a file as it arrives, without blocking the network thread.
    ///
    /// The file appears under its name atomically when it is complete, replacing an existing one; a failure or
    /// cancellation leaves an existing file unchanged. The permissions of a file that is replaced are kept. An empty body results in an empty file. If the path is a
    /// symbolic link to a file, its target is replaced. A device or a pipe is written to directly, so that bytes
    /// written before a failure remain; a named pipe must have a reader, see fifo(7), and blocks the calling thread
    /// while it is full. To write a body that can be resumed, use
    /// ``AsyncNetworking/SessionManager/download(_:to:options:)``.
    ///
    /// - Parameter path: The path of the file, whose directory must exist.
    /// - Returns: The number of bytes written, after decompression, without those that were read before the call.
    /// - Throws: ``AsyncNetworking/SessionError/file(_:)`` if the file cannot be written; ``ANHTTP/TransportError`` if
    ///   the body cannot be received; `CancellationError` if the calling task is cancelled; or the error of a
    ///   ``ANHTTP/ResponseBodySource`` of the program's own.
    @discardableResult
    public func write(to path: String) async throws -> Int64 {
        try await write(to: path) { _ in }
    }

    /// Writes the rest of the body to a file, as ``write(to:)`` does, and calls `observer` with each chunk after it was
    /// written.
    ///
    /// - Parameter mode: The permission bits of the file; `nil`, the default, keeps those of a file that is replaced.
    @discardableResult
    package func write(to path: String, mode: UInt32? = nil, observer: (Data) async throws -> Void) async throws
        -> Int64
    {
        do {
            var file = try AtomicFile(destination: path, mode: mode)
            if let temporaryPath = file.temporaryPath { await willBeWritten(to: temporaryPath) }
            for try await chunk in self {
                try file.write(chunk.bytes)
                try await observer(chunk)
            }
            let size = file.size
            try file.commit()
            return size
        } catch let error as SystemError {
            throw SessionError.file(path, error)
        }
    }
}
