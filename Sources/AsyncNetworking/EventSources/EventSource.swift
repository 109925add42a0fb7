// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import Synchronization

/// The server-sent events of a request, over as many connections as necessary (WHATWG HTML, “Server-sent events”).
///
/// ```swift
/// for try await event in api.events(for: Request(url: feed)) {
///     print(event.id, event.data)
/// }
/// ```
///
/// When a connection ends, the source waits and reconnects, with `Last-Event-ID` if the server has sent an ID, so that
/// the server can continue after the last event that was received:
///
/// | a response or connection | result |
/// |---|---|
/// | has status 200 and the type `text/event-stream` | its events |
/// | ends | reconnects if the method is `GET`, up to the policy's `limit`; the response to another method is complete, and so is the sequence |
/// | is lost | reconnects if the request can be repeated: the retry policy permits it, and the body is replayable |
/// | cannot be established, or has a status that the retry policy retries, such as 503 | reconnects if the request can be repeated |
/// | is refused by an open circuit of a ``CircuitBreaker``, or has waited for a route for too long | reconnects, after an open circuit when another request may be sent |
/// | has status 204 | the sequence ends |
/// | has another status or type | throws ``ANSerialization/SerializationError/rejected(_:)`` with at most 64 KiB of the body |
///
/// The wait is the reconnection time, which the server sets with `retry:` to a day at most, plus the longer of the `backoff` of the
/// retry policy and `Retry-After`. A `Retry-After` above the `maximumRetryAfter` of the request's policy is not waited for:
/// the source throws the error of that response. Without a policy of the request, at most a day is waited for. The backoff begins anew when something was received, and so do the policy's
/// `limit` and `deadline`; the `deadline` applies only after a failure. The retry policy is the request's
/// `Request.retryPolicy`; without one, it is the default ``RetryPolicy``, but without a limit on retries and on `Retry-After`. The session's
/// policy, and the `decision` and `budget` of the request's, do not apply.
///
/// A source can be iterated once; a second iteration ends immediately. Nothing is sent before the first one. A slow
/// reader slows the server down: at most ``ANHTTP/TransferOptions/streamBufferSize`` bytes are read ahead of it. When the
/// iteration ends, so does the connection; if the calling task is cancelled, `next()` throws `CancellationError` after
/// the exchange has ended.
///
/// A connection without any bytes, not even comments, for ``ANHTTP/Timeouts/idle`` counts as lost. The default
/// ``ANHTTP/TransferOptions/decompressionLimit`` does not apply to a compressed response, which may end without the end of
/// its content coding; one that the session or the request sets does.
public struct EventSource: AsyncSequence, Sendable {
    let core: Core

    init(core: Core) {
        self.core = core
    }

    /// The states of the connection: the current one first, then later ones, until the stream ends after
    /// ``Status/closed``. A slow reader skips states, but never the last. There is no state before the source is
    /// iterated; if the source is released before that, the stream ends without one.
    public var statuses: BroadcastStream<Status> {
        core.statuses.stream
    }

    /// Returns an iterator that connects when its first event is requested. Only the first iterator of a source, or of
    /// its copies, yields events; later ones end immediately.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: core.takeReader())
    }

    /// A state of a source's connection; see ``EventSource/statuses``.
    @nonexhaustive
    public enum Status: Sendable {
        /// A request is being sent, or its response is awaited: the first one, or one to reconnect.
        case connecting
        /// A response with this head, which has status 200 and the type `text/event-stream`, was accepted, and its
        /// events are being received.
        case open(ResponseHead)
        /// The connection ended, with this error, or with `nil` if the response was complete. The next one is made at
        /// this time.
        case waiting(until: Date, after: (any Error)?)
        /// There are no more connections, because the sequence has ended or has thrown an error; always the last state.
        case closed
    }

    /// An iterator over the events of a source, for one task at a time. The connection ends with it.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let reader: EventReader?

        /// Returns the next event, waiting and reconnecting if necessary; `nil` at the end, and after an error was
        /// thrown.
        ///
        /// - Throws: ``SessionError`` if there is no further attempt to connect, an event is too large, or the manager
        ///   was invalidated (``SessionError/invalidated``); `CancellationError` if the calling task is cancelled or
        ///   the manager cancels its requests; or the error of an interceptor of the program's own.
        public mutating func next() async throws -> ServerSentEvent? {
            try await reader?.next()
        }
    }

    /// The state that the copies of a source share.
    final class Core: Sendable {
        let statuses = Broadcast<Status>()
        private let makeReader: ReaderMaker
        private let isTaken = Atomic(false)

        typealias ReaderMaker = @Sendable (Broadcast<Status>) -> EventReader

        init(_ makeReader: @escaping ReaderMaker) {
            self.makeReader = makeReader
        }

        deinit {
            // A reader that was taken ends the stream.
            if !isTaken.load(ordering: .acquiring) { statuses.finish() }
        }

        /// Returns the reader; `nil` if it was taken before.
        func takeReader() -> EventReader? {
            isTaken.exchange(true, ordering: .acquiringAndReleasing) ? nil : makeReader(statuses)
        }
    }
}

extension SessionManager {
    /// Returns the server-sent events of a request as a sequence that reconnects; ``EventSource`` describes when.
    ///
    /// `Accept: text/event-stream` and `Cache-Control: no-store` are added if the request has no such fields. To
    /// continue after an event of an earlier source, set its ID as the header field `Last-Event-ID`.
    ///
    /// ```swift
    /// var request = Request(url: feed)
    /// request.headers[.lastEventID] = "1047"
    /// request.retryPolicy = RetryPolicy(limit: 10)
    /// for try await event in api.events(for: request) { print(event.data) }
    /// ```
    ///
    /// - Parameters:
    ///   - request: The request, sent again for each connection; any method is possible. Without a
    ///     `Request.retryPolicy` there is no limit on the number of reconnections.
    ///   - reconnectionTime: The shortest wait before a reconnection until the server sets one with `retry:`; 3 s by
    ///     default. A negative one counts as zero.
    ///   - maximumEventSize: The maximum size of the data of an event in bytes; 16 MiB by default, and a negative one
    ///     counts as zero. A line may have 8 bytes more, for the name of its field. A larger event or line ends the
    ///     sequence with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``, in a ``SessionError``.
    /// - Returns: The source, which sends nothing until it is iterated.
    public nonisolated func events(
        for request: Request, reconnectionTime: Duration = .seconds(3), maximumEventSize: Int = 16 << 20
    ) -> EventSource {
        EventSource(
            core: EventSource.Core { statuses in
                EventReader(
                    request, on: self, reconnectionTime: max(.zero, reconnectionTime),
                    maximumEventSize: maximumEventSize, reporting: statuses)
            })
    }
}
