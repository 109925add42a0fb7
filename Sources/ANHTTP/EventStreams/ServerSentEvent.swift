// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// A server-sent event, as defined in the WHATWG HTML standard, section “Server-sent events”.
///
/// ``ResponseBody/serverSentEvents`` yields the events of one response, and `SessionManager.events(for:)` those of a
/// source with reconnection. `decoded(as:)` decodes ``data``, for example from JSON. Comments and `retry:` lines are
/// not part of events.
public struct ServerSentEvent: Hashable, Sendable {
    /// The type of the event; `message` unless the server names another one with `event:`.
    public var type: String
    /// The data, which may be empty; several `data:` lines are joined by LF. An event without a `data:` line is not
    /// delivered.
    public var data: String
    /// The last event ID of the stream when the event ended; empty if the server has sent none.
    ///
    /// An event without `id:` has the ID of the events before it.
    public var id: String
    /// The session that received the event.
    package var session = EventSession()

    /// Creates an event, as for tests.
    ///
    /// - Parameters:
    ///   - type: The type of the event; `message` by default.
    ///   - data: The data, in which lines are separated by LF.
    ///   - id: The last event ID; empty, the default, for none.
    public init(type: String = "message", data: String, id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}

/// The settings of the session that received an event. Does not take part in comparisons of events.
package struct EventSession: Hashable, Sendable {
    /// The decoder of the session; `nil` for an event that no session received.
    package var jsonDecoder: JSONDecoder?

    /// Creates the value for an event of no session.
    package init() {}

    /// Returns `true`.
    package static func == (first: EventSession, second: EventSession) -> Bool { true }

    /// Hashes nothing.
    package func hash(into hasher: inout Hasher) {}
}

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
    /// is removed. Iteration throws the errors of the transfer, and `CancellationError` if the task is cancelled. A second
    /// iteration of the sequence continues where the first one stopped; another sequence does not have the events that this
    /// one has read ahead.
    ///
    /// - Parameter maximumEventSize: The maximum size of the data of an event in bytes, after decompression. Lines of
    ///   comments and other fields may be 8 bytes longer. A larger event or line makes iteration throw
    ///   ``TransportError/Reason/responseTooLarge(_:)``. A negative value counts as 0.
    public func serverSentEvents(
        maximumEventSize: Int
    ) -> some AsyncSequence<ServerSentEvent, any Error> & Sendable {
        var parser = ServerSentEventParser(maximumEventSize: maximumEventSize)
        parser.session.jsonDecoder = jsonDecoder
        return ServerSentEvents(reader: BodyReader(self, by: parser))
    }

    /// The server-sent events of a response body (WHATWG HTML, “Server-sent events”).
    ///
    /// An event that is incomplete at the end of the body is discarded, as the standard requires.
    private struct ServerSentEvents: AsyncSequence, Sendable {
        fileprivate let reader: BodyReader<ServerSentEventParser>

        /// Creates an iterator that reads the body's events.
        func makeAsyncIterator() -> Iterator {
            Iterator(reader: reader)
        }

        /// An iterator over events.
        struct Iterator: AsyncIteratorProtocol {
            fileprivate let reader: BodyReader<ServerSentEventParser>

            /// Returns the next event; `nil` at the end of the body.
            mutating func next() async throws -> ServerSentEvent? {
                try await reader.next()
            }
        }
    }
}
