// SPDX-License-Identifier: MIT

public import ANHTTP

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
