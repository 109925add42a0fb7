// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

extension ResponseBody {
    /// Writes the rest of the body to a file, off the network's thread, as fast as it arrives.
    ///
    /// The file appears under its name when it is complete; a failure leaves what was there before.
    ///
    /// - Returns: The number of bytes written.
    /// - Throws: ``AsyncNetworking/SessionError/file(_:)``, or what reading throws.
    @discardableResult
    public func write(to path: String) async throws -> Int64 {
        do {
            var file = try AtomicFile(destination: path)
            for try await chunk in self { try file.write(chunk.bytes) }
            let size = file.size
            try file.commit()
            return size
        } catch let error as SystemError {
            throw SessionError.file(path, error)
        }
    }
}
