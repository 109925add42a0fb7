// SPDX-License-Identifier: MIT

extension ResponseBody {
    /// The body as a sequence of server-sent events (WHATWG HTML, “Server-sent events”), regardless of its media type.
    ///
    /// The sequence ends with the body; it does not reconnect, as `SessionManager.events(for:)` does. An event that is
    /// incomplete at the end is discarded. Invalid UTF-8 is replaced by U+FFFD, and a byte order mark at the beginning
    /// is removed. Iteration throws ``TransportError/Reason/responseTooLarge(_:)`` for an event or a line of more than
    /// 16 MiB, and the errors of the transfer; see ``serverSentEvents(maximumEventSize:)`` for other limits.
    public var serverSentEvents: some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        serverSentEvents(maximumEventSize: 16 << 20)
    }

    /// Returns the body as a sequence of server-sent events (WHATWG HTML, “Server-sent events”), regardless of its
    /// media type.
    ///
    /// The sequence ends with the body; it does not reconnect, as `SessionManager.events(for:)` does. An event that is
    /// incomplete at the end is discarded. Invalid UTF-8 is replaced by U+FFFD, and a byte order mark at the beginning
    /// is removed. Iteration throws the errors of the transfer.
    ///
    /// - Parameter maximumEventSize: The maximum size of the data of an event in bytes, after decompression. Lines of
    ///   comments and other fields may be 8 bytes longer. A larger event or line makes iteration throw
    ///   ``TransportError/Reason/responseTooLarge(_:)``. A negative value counts as 0.
    public func serverSentEvents(
        maximumEventSize: Int
    ) -> some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        ServerSentEvents(body: self, maximumEventSize: maximumEventSize)
    }

    /// The server-sent events of a response body (WHATWG HTML, “Server-sent events”).
    ///
    /// An event that is incomplete at the end of the body is discarded, as the standard requires.
    private struct ServerSentEvents: AsyncSequence, Sendable {
        fileprivate let body: ResponseBody
        fileprivate let maximumEventSize: Int

        /// Creates an iterator that reads the body's events.
        func makeAsyncIterator() -> Iterator {
            var parser = ServerSentEventParser(maximumEventSize: maximumEventSize)
            parser.session.jsonDecoder = body.jsonDecoder
            return Iterator(chunks: body.makeAsyncIterator(), parser: parser)
        }

        /// An iterator over events.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate var chunks: ResponseBody.Iterator
            fileprivate var parser: ServerSentEventParser

            /// Returns the next event; `nil` at the end of the body.
            mutating func next() async throws -> ServerSentEvent? {
                while true {
                    if let event = try parser.next() { return event }
                    guard let chunk = try await chunks.next() else { return nil }
                    parser.append(chunk)
                }
            }
        }
    }
}
