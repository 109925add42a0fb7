// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials

extension RequestBody {
    /// Writes the body to a file, which appears under its name when it is complete.
    ///
    /// `check` receives the number of bytes before the file is committed, and can prevent that by throwing.
    package func write(to path: String, check: (Int64) throws -> Void = { _ in }) async throws {
        var reader = SegmentReader([BodySegment(self)])
        do {
            var file = try AtomicFile(destination: path)
            while let chunk = try await reader.nextChunk() {
                try Task.checkCancellation()
                try file.write(chunk.bytes)
            }
            try check(file.size)
            try file.commit()
        } catch let error as SystemError {
            throw SerializationError.multipart(.notWritten(path: path, reason: error.description))
        }
    }
}
