// SPDX-License-Identifier: MIT

package import ANHTTP

extension RequestBody {
    /// Writes the body to a file, which appears under its name when it is complete.
    ///
    /// - Throws: See ``write(to:)``; ``SerializationError/multipart(_:)`` if the file cannot be written.
    package func write(toFile path: String) async throws {
        try await [BodySegment(self)].write(to: path) { _ in }
    }
}
