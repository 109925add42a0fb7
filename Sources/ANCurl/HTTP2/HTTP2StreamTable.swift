// SPDX-License-Identifier: MIT

/// The streams of an HTTP/2 connection on which requests are waiting, with the server's statements about them.
///
/// libcurl does not report the stream identifier of a request. Requests open streams 1, 3, 5, … in the order in which
/// they are sent.
package struct HTTP2StreamTable {
    private var streams: [UInt32: HTTP2Stream] = [:]
    private var nextNumber: UInt32 = 1
    /// The last stream that the server may process, as announced by GOAWAY; `nil` before GOAWAY is received.
    package private(set) var lastStream: UInt32?
    /// The number of streams that the server allows at the same time; `nil` before its settings are received.
    package private(set) var maximumStreams: UInt32?
    /// Whether the server violated the protocol, so that no stream of the connection can continue.
    package private(set) var isBroken = false

    /// Creates the table of a connection that has not carried a request.
    package init() {}

    /// Whether the connection accepts no new streams.
    package var isClosing: Bool { lastStream != nil || isBroken }

    /// Adds the stream of a request that is about to be sent.
    package mutating func open() -> HTTP2Stream {
        let stream = HTTP2Stream(number: nextNumber)
        streams[nextNumber] = stream
        nextNumber += 2
        return stream
    }

    /// Removes the stream that was opened last because its request was not sent after all. The next request uses its
    /// number.
    package mutating func withdraw(_ stream: HTTP2Stream) {
        guard stream.number + 2 == nextNumber else { return }
        close(stream)
        nextNumber = stream.number
    }

    /// Removes the stream of a finished request.
    package mutating func close(_ stream: HTTP2Stream) {
        if streams[stream.number] === stream { streams[stream.number] = nil }
    }

    /// Returns the stream with an identifier; `nil` if no request is waiting on it.
    package subscript(number: UInt32) -> HTTP2Stream? { streams[number] }

    /// Updates the streams according to a frame.
    package mutating func receive(_ event: HTTP2FrameScanner.Event) {
        // The server used a client-initiated stream that is still idle (RFC 9113 §5.1). nghttp2 ends the session, while
        // libcurl 7.88 would continue to send requests.
        if let number = event.stream, number % 2 == 1, number >= nextNumber { isBroken = true }
        switch event {
        case .settings(let maximum):
            // Without a limit, there is none, unless there was one before (RFC 9113 §6.5.2).
            maximumStreams = maximum ?? maximumStreams ?? .max
        case .headers(let number, let endsStream):
            streams[number]?.hasHead = true
            if endsStream { streams[number]?.end = .afterHeaders }
        case .headersEnd(let number):
            if streams[number]?.end == .afterHeaders { streams[number]?.end = .reached }
        case .data(let number, let count, let endsStream):
            streams[number]?.bodySize += count
            if endsStream { streams[number]?.end = .reached }
        case .reset(let number, let code):
            streams[number]?.isReset = true
            if streams[number]?.rejection == nil { streams[number]?.rejection = HTTP2Stream.Rejection(code: code) }
        case .goAway(let last, _):
            lastStream = min(last, lastStream ?? last)
            for stream in streams.values where stream.number > last { stream.rejection = .leftOut }
        case .violation:
            isBroken = true
        }
    }
}

/// The server's statements about the stream of a request.
package final class HTTP2Stream {
    /// Its identifier (RFC 9113 §5.1.1).
    package let number: UInt32
    /// Whether a HEADERS frame was received, possibly of an interim response.
    package fileprivate(set) var hasHead = false
    /// The size of the body in bytes, as announced by frame headers so far.
    package fileprivate(set) var bodySize = 0
    fileprivate var end = End.open
    /// Whether the server has ended the stream by END_STREAM, with the whole header block that has it.
    package var isEnded: Bool { end == .reached }
    /// Whether the server has reset the stream.
    package fileprivate(set) var isReset = false
    /// Why the server does not answer on the stream, if it says so.
    package fileprivate(set) var rejection: Rejection?

    /// How far the server has ended the stream.
    fileprivate enum End {
        case open
        /// At the end of the header block, of which frames are missing.
        case afterHeaders
        case reached
    }

    /// The reason for which a server does not answer on a stream.
    package enum Rejection {
        /// The stream's identifier is greater than the last one in GOAWAY.
        case leftOut
        /// The server has reset the stream with REFUSED_STREAM (RFC 9113 §7).
        case refused
        /// The server has reset the stream with ENHANCE_YOUR_CALM, because the connection takes too much of it.
        case overload

        fileprivate init?(code: UInt32) {
            switch code {
            case 7: self = .refused
            case 11: self = .overload
            default: return nil
            }
        }
    }

    /// Whether the server states that it has not processed the request, which can then be sent again regardless of its
    /// method (RFC 9113 §8.7).
    package var isUnprocessed: Bool { rejection == .leftOut || rejection == .refused }

    /// The time to wait before a request is sent again that an overloaded server did not answer: about 100 ms after the
    /// first attempt, then twice as long each time, up to 3.2 s.
    package static func pause(attempts: Int) -> Duration {
        .milliseconds(100 << min(max(0, attempts - 1), 5))
    }

    fileprivate init(number: UInt32) {
        self.number = number
    }
}
