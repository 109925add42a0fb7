// SPDX-License-Identifier: MIT

public import ANHTTP

extension RequestBody {
    /// Passes all bytes of the body to a writer: for a custom transport, or for an interceptor that reads bodies.
    ///
    /// A file is read in chunks of at most 256 KiB. A sequence is iterated, and a closure called, each time that this
    /// function is called; a body that is not replayable must be written only once. Without a body, the writer receives
    /// nothing. The body of a session's `TransferTask`, unless its length is known and at most 256 KiB, waits while the
    /// task is suspended, and throws `CancellationError` if the task is cancelled. With any other body, cancellation
    /// ends this function only if the sequence, the closure or the writer throws because of it.
    ///
    /// - Parameter writer: Receives the bytes in order, in chunks that are not empty, and determines the speed.
    /// - Throws: ``ANSerialization/SerializationError/multipart(_:)`` for a file that cannot be read, a length that
    ///   differs from the declared one, or a form that is written again although one of its parts is not replayable;
    ///   the error of the sequence, closure or writer.
    public func write(to writer: sending RequestBodyWriter) async throws {
        try await gate?()
        try await [BodySegment(self)].write(to: writer.gated(by: gate))
    }
}
