// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What a ``StubServer`` does for one request: a list of actions, as a value.
///
/// Most scripts are made by words, such as `.json("{}")`, `.redirect(303, to: "/y")` or `.resetAfter(bytes: 10)`. A
/// script that needs more is a list: `Script([.informational(103), .delay(.seconds(1)), .reply(.init(body: data))])`.
public struct Script: Sendable {
    /// What is done, in order.
    public var actions: [Action]
    /// Whether the server reads the request's body before the first action; otherwise ``Action/readBody(upTo:)`` does.
    ///
    /// What is unread when the actions are done is read before the next request on the connection.
    public var readsBodyFirst: Bool
    /// How `Expect: 100-continue` is met when the body is about to be read.
    public var expectation: Expectation

    /// Creates a script.
    public init(_ actions: [Action], readsBodyFirst: Bool = true, expectation: Expectation = .sendContinue()) {
        self.actions = actions
        self.readsBodyFirst = readsBodyFirst
        self.expectation = expectation
    }

    /// One thing that a server does.
    public enum Action: Sendable {
        /// Reads the request's body: all of it, or at least so many bytes.
        case readBody(upTo: Int64? = nil)
        /// Sends an interim head, such as 100 or 103.
        case informational(Int, headers: HeaderPairs = [:])
        /// Sends a whole response.
        case reply(Reply)
        /// Sends the response that a function makes of the request, as far as it was read.
        case respond(@Sendable (RecordedRequest) -> Reply)
        /// Sends bytes as they are, so that they may be no HTTP at all.
        case send(Data)
        /// Sends so many of ``StubServer/generatedBytes(_:)`` without holding them in memory.
        case generate(Int64)
        /// Waits; ends the script when the client closes meanwhile.
        case delay(Duration)
        /// Waits until the gate is open; ends the script when the client closes meanwhile.
        case wait(ScriptGate)
        /// Slows down all that is sent from here on.
        case pace(Pace)
        /// Ends the connection after exactly so many more bytes, or at the end of the script if it sends fewer.
        case cut(afterBytes: Int64, by: Ending)
        /// Ends the connection now.
        case end(Ending)
        /// Does nothing until the client closes or the server stops.
        case hang
    }

    /// How a connection ends.
    public enum Ending: Hashable, Sendable {
        /// In order: what was sent arrives, then the end. With TLS the end is announced (`close_notify`).
        case close
        /// By FIN alone; with TLS that is a truncation. The same as ``close`` without TLS.
        case closeWithoutNotify
        /// By RST, once what was sent has left. A Unix-domain socket has no RST: it is closed.
        case reset
    }

    /// How `Expect: 100-continue` is met, RFC 9110 §10.1.1.
    public enum Expectation: Hashable, Sendable {
        /// By `100 Continue`, at once or after a while.
        case sendContinue(after: Duration = .zero)
        /// By silence: the server waits for a body that a client sends only when it loses patience.
        case withhold
    }

    /// A speed: so many bytes, then a pause.
    public struct Pace: Hashable, Sendable {
        /// The bytes sent together.
        public var bytes: Int
        /// The pause before the next ones.
        public var interval: Duration

        /// Creates a pace; fewer than 1 byte counts as 1.
        public init(bytes: Int, every interval: Duration) {
            self.bytes = max(1, bytes)
            self.interval = interval
        }

        /// So many bytes a second, in pieces of `chunk` bytes.
        public static func bytesPerSecond(_ rate: Int, chunk: Int = 1024) -> Pace {
            Pace(bytes: chunk, every: .seconds(1) * Double(max(1, chunk)) / Double(max(1, rate)))
        }
    }
}
