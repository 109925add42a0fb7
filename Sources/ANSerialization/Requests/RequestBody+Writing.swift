// SPDX-License-Identifier: MIT

public import ANHTTP

extension RequestBody {
    /// Passes all bytes of the body to a writer: for a custom transport, or for an interceptor that reads bodies.
    ///
    /// A file is read in chunks of at most 256 KiB. A sequence is iterated, and a closure called, each time that this
    /// function is called; a body that is not replayable must be written only once.
    ///
    /// - Parameter writer: Receives the bytes in order, and determines the speed.
    /// - Throws: ``ANSerialization/SerializationError/multipart(_:)`` for a file that cannot be read, or a length that
    ///   differs from the declared one; the error of the sequence, closure or writer.
    public func write(to writer: sending RequestBodyWriter) async throws {
        try await gate?()
        try await [BodySegment(self)].write(to: writer.gated(by: gate))
    }
}
