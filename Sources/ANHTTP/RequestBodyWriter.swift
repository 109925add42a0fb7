// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A destination for the bytes of a request body, in order.
///
/// The closure of ``RequestBody/writer(length:_:)`` receives one. It is not `Sendable`, so that writes cannot overlap.
/// An interceptor can create one to read another body, as here to encrypt it:
///
/// ```swift
/// let plain = request.body
/// request.body = .writer { output in
///     try await plain.write(to: RequestBodyWriter { chunk in try await output.write(encrypted(chunk)) })
/// }
/// ```
public struct RequestBodyWriter {
    private let send: (Data) async throws -> Void

    /// Creates a writer that passes its bytes to a closure.
    ///
    /// - Parameter send: Receives the bytes of each call of a `write` function, possibly empty, with indices that start
    ///   at 0; returns when it can receive the next ones. An error that it throws is thrown by the function that writes.
    public init(_ send: sending @escaping (Data) async throws -> Void) {
        self.send = send
    }

    private init(send: @escaping (Data) async throws -> Void) {
        self.send = send
    }

    /// Returns a writer that awaits a gate after each chunk; the same writer without one.
    package func gated(by gate: (@Sendable () async throws -> Void)?) -> RequestBodyWriter {
        guard let gate else { return self }
        return RequestBodyWriter(send: { [send] chunk in
            try await send(chunk)
            try await gate()
        })
    }

    /// Writes bytes, and waits until there is room for more.
    ///
    /// The writer of a request buffers about 512 KiB; after that, this function returns when the connection has
    /// accepted some of them. That the bytes were written does not mean that the server has received them.
    ///
    /// - Parameter bytes: The bytes, possibly none, sent after those written before.
    /// - Throws: `CancellationError` if the exchange is over, if the body must be sent again from its beginning, or if
    ///   the closure that received the writer has returned; or
    ///   ``TransportError/RequestBodyFailure/tooLong(declared:)``. The closure should end then: bytes that it writes
    ///   are discarded. A writer created with ``init(_:)`` throws the errors of its closure.
    public func write(_ bytes: some DataProtocol) async throws {
        // `Data(bytes)` copies the bytes of another `Data`, which is necessary only for a slice: readers may assume that
        // the indices start at 0.
        if let data = bytes as? Data, data.startIndex == 0 {
            try await send(data)
        } else {
            try await send(Data(bytes))
        }
    }

    /// Writes the UTF-8 encoding of a string, and waits until there is room for more.
    ///
    /// The writer of a request buffers about 512 KiB; after that, this function returns when the connection has
    /// accepted some of them.
    ///
    /// - Parameter text: The text, sent after the bytes written before.
    /// - Throws: `CancellationError` if the exchange is over, if the body must be sent again from its beginning, or if
    ///   the closure that received the writer has returned; or
    ///   ``TransportError/RequestBodyFailure/tooLong(declared:)``. The closure should end then: bytes that it writes
    ///   are discarded. A writer created with ``init(_:)`` throws the errors of its closure.
    public func write(_ text: String) async throws {
        try await send(Data(text.utf8))
    }
}

/// The closure of a body that is written while it is sent. It may be called once for each time that the body is sent.
///
/// The writer is not `Sendable`, so that writes cannot overlap. `@concurrent` and `sending` are necessary for closures
/// with capture lists, which the compiler does not infer to be `nonisolated(nonsending)`.
package typealias BodyWriting = @concurrent @Sendable (sending RequestBodyWriter) async throws -> Void
