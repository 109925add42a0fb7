// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension Script {
    /// Returns a script that responds with status 200 and server-sent events (`text/event-stream`).
    ///
    /// The events are sent one by one, in the format of WHATWG HTML, “Server-sent events”. `Content-Length` is the size
    /// of the body, and one byte more if an interruption follows the events. A client may receive several events at
    /// once, or an event in parts. In response to HEAD, a server sends the events, too.
    ///
    /// - Parameters:
    ///   - events: The events. Each line of their data is sent as a `data:` line. An event without an ID is sent
    ///     without `id:`, and one of type `message` without `event:`. IDs and types are not checked.
    ///   - retry: The reconnection time, sent as a `retry` line before the events, truncated to whole milliseconds;
    ///     `nil`, the default, for none. A negative number of milliseconds is sent, too; clients ignore it.
    ///   - interval: The pause after each event, including the last one, and after the `retry` line; zero, the default,
    ///     or a negative duration for none.
    ///   - ending: What follows the events; the end of the response by default.
    public static func events(
        _ events: [ServerSentEvent], retry: Duration? = nil, every interval: Duration = .zero,
        then ending: StreamEnding = .complete
    ) -> Script {
        let start = retry.map { ["retry: \(Int64(clamping: $0.attoseconds / 1_000_000_000_000_000))\n\n"] } ?? []
        return .stream(start + events.map(\.encoded), type: "text/event-stream", every: interval, then: ending)
    }

    /// Returns a script that responds with status 200 and pieces of text, sent one by one: for event streams, JSON
    /// lines and others, valid or not.
    ///
    /// `Content-Length` is the size of the body, and one byte more if an interruption follows the pieces. A client may
    /// receive several pieces at once, or a piece in parts. In response to HEAD, a server sends the pieces, too.
    ///
    /// - Parameters:
    ///   - pieces: The pieces of the body, sent in UTF-8; without any, the body is empty.
    ///   - type: The `Content-Type`.
    ///   - interval: The pause after each piece, including the last one; zero, the default, or a negative duration for
    ///     none.
    ///   - ending: What follows the pieces; the end of the response by default.
    public static func stream(
        _ pieces: [String], type: String, every interval: Duration = .zero, then ending: StreamEnding = .complete
    ) -> Script {
        let size = Int64(pieces.reduce(0) { $0 + $1.utf8.count })
        // A response that ends early declares a byte more than is sent.
        let declared = ending == .complete ? size : size + 1
        let head = Reply(headers: ["Content-Type": type], framing: .contentLength(declared: declared))
        var actions: [Action] = [.reply(head)]
        for piece in pieces {
            actions.append(.send(Data(piece.utf8)))
            if interval > .zero { actions.append(.delay(interval)) }
        }
        switch ending {
        case .complete: break
        case .drop: actions.append(.end(.closeWithoutNotify))
        case .hang: actions.append(.hang)
        }
        return Script(actions)
    }

    /// The end of a stream after its last piece: regular, or an interruption.
    ///
    /// It is an argument of ``Script/stream(_:type:every:then:)`` and ``Script/events(_:retry:every:then:)``, and of
    /// the functions of ``MockResponse`` with the same names.
    public enum StreamEnding: Hashable, Sendable {
        /// The response is complete, and the connection stays open unless the request requires closing it.
        case complete
        /// The connection is closed before the end of the declared body, without `close_notify`. With a
        /// ``MockTransport``, receiving the body fails with `TransportError.Reason.connectionLost`.
        case drop
        /// The body is not complete, and nothing follows until the client closes the connection or its sending side, or
        /// the server is stopped; with a ``MockTransport``, until the task is cancelled or the transport is shut down.
        case hang
    }
}

extension ServerSentEvent {
    /// The event as sent in an event stream.
    var encoded: String {
        var text = ""
        if !id.isEmpty { text += "id: \(id)\n" }
        if type != "message" { text += "event: \(type)\n" }
        // Swift takes CR LF for one character. Other line breaks, such as U+2028, are part of a line.
        for line in data.split(omittingEmptySubsequences: false, whereSeparator: { ["\r", "\n", "\r\n"].contains($0) })
        {
            text += "data: \(line)\n"
        }
        return text + "\n"
    }
}
