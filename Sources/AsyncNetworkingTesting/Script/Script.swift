// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import CLinux
public import FoundationEssentials
import Glibc
public import HTTPTypes

/// The behaviour of a ``StubServer`` for one request: a list of actions, as a value.
///
/// Routes, ``StubServer/fallback(_:)`` and ``StubServer/enqueue(_:)`` assign scripts to the requests of a server.
/// ``MockTransport/init(script:clock:)`` performs one without a server.
///
/// Most scripts are created by static members, such as `.json("{}")`, `.redirect(303, to: "/y")` or
/// `.resetAfter(bytes: 10)`. Others are created from a list of actions:
/// `Script([.informational(103), .delay(.seconds(1)), .reply(.init(body: data))])`.
public struct Script: Sendable {
    /// The actions, performed in order for each request that the script handles.
    ///
    /// Without an action that sends bytes, the client receives nothing, except `100 Continue` if it expects that. After
    /// the last action, the connection remains open for another request, unless an action ends it, or the request or a
    /// response requires closing it, for example by `Connection: close`.
    public var actions: [Action]
    /// Whether the server reads the request body before the first action; `true` by default. Otherwise
    /// ``Action/readBody(upTo:)`` reads it.
    ///
    /// After the last action, the server reads the unread rest of the body before the next request on the connection.
    /// The property has no effect for a script that the function of a route or of a fallback returns, and with a
    /// ``MockTransport``: the body is then always read before.
    public var readsBodyFirst: Bool
    /// The reaction to `Expect: 100-continue` when the body is about to be read and no byte of it has arrived; by
    /// default `100 Continue` is sent at once.
    ///
    /// It does not apply to a script that the function of a route or of a fallback returns: the body is then read
    /// before, after `100 Continue`. If the body is read only after the last action, nothing is sent. A
    /// ``MockTransport`` ignores it.
    public var expectation: Expectation

    /// Creates a script from actions.
    ///
    /// - Parameters:
    ///   - actions: The actions in order; empty for none, so that the client receives no response.
    ///   - readsBodyFirst: Whether the server reads the request body before the first action; `true` by default.
    ///   - expectation: The reaction to `Expect: 100-continue`; by default `100 Continue` is sent at once.
    public init(_ actions: [Action], readsBodyFirst: Bool = true, expectation: Expectation = .sendContinue()) {
        self.actions = actions
        self.readsBodyFirst = readsBodyFirst
        self.expectation = expectation
    }

    /// A script that accepts a WebSocket connection, without a subprotocol and extensions, sends all messages back and
    /// answers pings, until the client closes the connection.
    public static let webSocketEcho = Script([.acceptWebSocket(), .echoMessages()])

    /// An action of a server for a request, performed on the connection's thread.
    ///
    /// ``MockTransport/init(script:clock:)`` describes which actions a mock transport performs, and how.
    public enum Action: Sendable {
        /// Reads the request body: all of it by default, or until at least the given number of its bytes has arrived,
        /// including those read before.
        ///
        /// Nothing is read if the body is complete. With a number below 1, only ``Script/expectation`` is met; as long
        /// as no byte of the body has arrived, each further action of this kind meets it again. If the client closes
        /// the connection before, the script ends; a malformed body is answered with status 400, and ends the
        /// connection. A ``MockTransport`` has read the body before and ignores the action.
        case readBody(upTo: Int64? = nil)
        /// Sends an interim response, such as 100 or 103, by default without header fields. The status is not checked.
        /// A ``MockTransport`` reports it as an event, and accepts it only before the response; after 101, the exchange
        /// fails.
        case informational(Int, headers: HeaderPairs = [:])
        /// Sends a response: its head, its body, and its trailer fields. Several replies are sent one after the other;
        /// a ``MockTransport`` accepts only one.
        case reply(Reply)
        /// Sends the response that a function returns. The function receives the request as far as it was read, and is
        /// called on the connection's thread; with a ``MockTransport``, on the task of the exchange and before the
        /// first action. It is called concurrently for several connections or exchanges.
        case respond(@Sendable (RecordedRequest) -> Reply)
        /// Sends bytes unchanged, in place of or in addition to a response; they need not be valid HTTP. With TLS they
        /// are encrypted. Over HTTP, a ``MockTransport`` supports the action only after a reply, and appends them to
        /// its body as a chunk.
        case send(Data)
        /// Sends a number of bytes of the pattern of ``StubServer/generatedBytes(_:)``, which a server does not hold in
        /// memory. A negative number counts as 0. A ``MockTransport`` supports the action only on WebSocket
        /// connections.
        case generate(Int64)
        /// Waits for a duration; zero or a negative one for no delay.
        ///
        /// If the client closes the connection or its sending side meanwhile, or the server shuts it down, as by
        /// ``StubServer/stop()`` or ``StubServer/disconnectAll()``, the script ends.
        case delay(Duration)
        /// Waits until the gate is open, without a time limit.
        ///
        /// If the client closes the connection or its sending side meanwhile, or the server shuts it down, as by
        /// ``StubServer/stop()`` or ``StubServer/disconnectAll()``, the script ends.
        case wait(ScriptGate)
        /// Sends all further bytes of the script at a pace, until another pace is set or the body of a reply with a
        /// pace of its own was sent. A ``MockTransport`` supports it only on WebSocket connections.
        case pace(Pace)
        /// Ends the connection after exactly the given number of further bytes, or at the end of the script if it sends
        /// fewer. A negative number counts as 0, and a later `disconnect` replaces this one.
        ///
        /// The bytes are counted before encryption. The connection ends when the script is about to send another byte,
        /// so that delays and other waits after the last one are still performed. A ``MockTransport`` supports the
        /// action only on WebSocket connections.
        case disconnect(afterBytes: Int64, by: Ending)
        /// Ends the connection; further actions are not performed. With a ``MockTransport``, every ending has the same
        /// effect, except after an interim response.
        case end(Ending)
        /// Waits until the client closes the connection or its sending side, or the server shuts it down, as by
        /// ``StubServer/stop()`` or ``StubServer/disconnectAll()``; further actions are not performed. With a
        /// ``MockTransport``, waits until the task is cancelled or the transport is shut down.
        case hang
        /// Accepts a WebSocket connection (RFC 6455 §4.2.2) with status 101. The request is not checked.
        ///
        /// The given fields are sent in addition to `Upgrade`, `Connection` and `Sec-WebSocket-Accept`, or in place of
        /// those with the same name. The following actions send and receive frames; ``send(_:)`` sends malformed ones.
        /// If the fields accept `permessage-deflate`, compressed frames of the client are sent back unchanged. The
        /// connection is closed after the script.
        case acceptWebSocket(headers: HeaderPairs = [:])
        /// Sends a WebSocket message in a single frame, unmasked and uncompressed. The script must have accepted a
        /// WebSocket connection with ``acceptWebSocket(headers:)`` before. A server does not check that; with a
        /// ``MockTransport``, the exchange otherwise fails with `TransportError.Reason.invalidResponse`.
        case message(WebSocketMessage)
        /// Sends the frames of the client's messages back and answers pings: for a number of messages, or by default
        /// until the client closes the connection. With zero or a negative number, nothing is read.
        ///
        /// A close frame of the client is answered with its code, and ends the connection. An invalid frame ends the
        /// connection without an answer.
        case echoMessages(Int? = nil)
        /// Sends a close frame, by default without a code, reads until the client's close frame, without a time limit,
        /// and ends the connection.
        ///
        /// The code is not checked. The reason is sent only with a code, and truncated to 123 bytes of UTF-8. Frames
        /// that arrive before the client's close frame are discarded, and pings are not answered.
        case closeWebSocket(code: UInt16? = nil, reason: String = "")
    }

    /// A way to end a connection, orderly or abruptly.
    ///
    /// ``Action/end(_:)``, ``Action/disconnect(afterBytes:by:)`` and ``StubServer/Greeting/end(_:)`` take one.
    public enum Ending: Hashable, Sendable {
        /// Closes the connection in an orderly way after all sent bytes. With TLS the end is announced
        /// (`close_notify`).
        ///
        /// If the client may still be sending its request, the server sends FIN, and discards what arrives until the
        /// client closes the connection.
        case close
        /// Closes the connection as ``close`` does, but without `close_notify`. With TLS that is a truncation; without
        /// TLS it is the same as ``close``.
        case closeWithoutNotify
        /// Closes the connection at once and without `close_notify`, as servers do that do not read the rest of a
        /// request.
        ///
        /// If bytes of the client are unread or arrive later, the system sends RST, and the client may fail to send
        /// before it has read the response (RFC 9112 §9.6). Otherwise it sends FIN.
        case closeWithoutReading
        /// Sends RST after all sent bytes have been transmitted. A Unix-domain socket is closed instead, because it has
        /// no RST.
        case reset
    }

    /// A reaction to `Expect: 100-continue` (RFC 9110 §10.1.1), set as ``Script/expectation``.
    public enum Expectation: Hashable, Sendable {
        /// Sends `100 Continue` after a delay; zero, the default, or a negative duration for none.
        ///
        /// After a delay it is sent even if the body has begun to arrive meanwhile.
        case sendContinue(after: Duration = .zero)
        /// Sends nothing and waits for the body, which a client sends only after its own timeout.
        case withhold
    }

    /// A pace for sending: pieces of a number of bytes, with a pause between them. The first piece is sent at once.
    ///
    /// ``Reply/pace`` sets it for the body of a response, and ``Action/pace(_:)`` for all further bytes of a script.
    ///
    /// In the reply of a ``MockTransport``, ``interval`` passes before each chunk, including the first, and ``bytes``
    /// has no effect.
    public struct Pace: Hashable, Sendable {
        /// The number of bytes that are sent without a pause; a value below 1 is replaced by 1.
        public var bytes: Int {
            didSet { bytes = max(1, bytes) }
        }
        /// The pause before each piece but the first; zero or a negative duration for none.
        public var interval: Duration

        /// Creates a pace.
        ///
        /// - Parameters:
        ///   - bytes: The number of bytes of a piece; a value below 1 counts as 1.
        ///   - interval: The pause before each piece but the first; zero or a negative duration for none.
        public init(bytes: Int, every interval: Duration) {
            self.bytes = max(1, bytes)
            self.interval = interval
        }

        /// Returns a pace with an average rate: pieces of `chunk` bytes with pauses of `chunk / rate` seconds.
        ///
        /// - Parameters:
        ///   - rate: The number of bytes per second; a value below 1 counts as 1.
        ///   - chunk: The number of bytes of a piece; 1,024 by default, and a value below 1 counts as 1.
        public static func bytesPerSecond(_ rate: Int, chunk: Int = 1024) -> Pace {
            Pace(bytes: chunk, every: .seconds(1) * Double(max(1, chunk)) / Double(max(1, rate)))
        }
    }
}

/// A gate that blocks a script until the test opens it, to determine an order without sleeping.
///
/// ```swift
/// let gate = try ScriptGate()
/// server.route("/", Script([.wait(gate), .reply(Reply())]))
/// …                       // the response has not been sent yet
/// gate.open()
/// ```
///
/// A gate remains open once it was opened. Any number of scripts can wait for it, and it can be opened on any thread.
public final class ScriptGate: Sendable {
    /// Readable once the gate is open, so that a server's thread can wait for the gate and its client at the same time.
    let descriptor: FileDescriptor
    private let isOpen = Observed(false)

    /// Creates a closed gate, which uses a file descriptor until it is released.
    ///
    /// - Throws: `SystemError` if no descriptor can be created, for example because the process or the system has too
    ///   many open files. See eventfd(2).
    public init() throws {
        let number = eventfd(0, CLINUX_EFD_FLAGS)
        guard number >= 0 else { throw SystemError.last("eventfd") }
        descriptor = FileDescriptor(takingOwnershipOf: number)
    }

    /// Opens the gate for all scripts that wait for it now or later. Opening it again has no effect.
    public func open() {
        isOpen.update { $0 = true }
        _ = eventfd_write(descriptor.number, 1)
    }

    /// Waits until the gate is open; throws `CancellationError` if the task is cancelled.
    package func wait() async throws {
        try await isOpen.wait { $0 }
    }
}

// The responses of a server in the notation of a mock, and those of a mock in the notation of a server: statuses are
// numbers or names, and header fields have names as text or as values.

extension Script {
    /// Returns a script that responds with a status such as `.notFound` and an empty body, by default without header
    /// fields but `Content-Length`, which responses with status 1xx, 204 and 304 and those to HEAD do not have.
    ///
    /// Only the code of the status is used: the reason phrase is the default of ``Reply/reason``.
    public static func status(_ status: HTTPResponse.Status, headers: HTTPFields = [:]) -> Script {
        .status(status.code, headers: HeaderPairs(headers))
    }

    /// Returns a script that responds with JSON text, a status such as `.created`, whose reason phrase is ignored, and
    /// `Content-Type: application/json`. The text is sent in UTF-8 and not validated.
    public static func json(_ text: String, status: HTTPResponse.Status) -> Script {
        .json(text, status: status.code)
    }

    /// Returns a script that responds with text in UTF-8, a status such as `.created`, whose reason phrase is ignored,
    /// and `Content-Type: text/plain; charset=utf-8`.
    public static func text(_ text: String, status: HTTPResponse.Status) -> Script {
        .text(text, status: status.code)
    }

    /// Returns a script that responds with status 200, bytes, and header fields such as `[.contentType: "image/png"]`,
    /// to which the server appends only `Content-Length`.
    public static func data(_ data: Data, headers: HTTPFields) -> Script {
        .data(data, headers: HeaderPairs(headers))
    }

    /// Returns a script that responds with a redirect and an empty body.
    ///
    /// - Parameters:
    ///   - status: The status, such as `.found`; its reason phrase is ignored.
    ///   - location: The value of `Location`, sent unchanged: a URL, relative or absolute, or anything else.
    public static func redirect(_ status: HTTPResponse.Status, to location: String) -> Script {
        .redirect(status.code, to: location)
    }
}

extension MockResponse {
    /// Returns a response without a body, with header fields such as `["Retry-After": "5"]`, to which none are added.
    ///
    /// Fields whose names are not tokens (RFC 9110 §5.6.2) are omitted. Invalid bytes of values (RFC 9110 §5.5) are
    /// replaced by spaces, and surrounding spaces and tabs are removed.
    public static func status(_ status: HTTPResponse.Status, headers: HeaderPairs) -> MockResponse {
        .status(status, headers: HTTPFields(lenient: headers))
    }

    /// Returns a response with status 200, bytes in one chunk, and header fields such as
    /// `["Content-Type": "image/png"]`, to which none are added, not even `Content-Length`.
    ///
    /// Fields whose names are not tokens (RFC 9110 §5.6.2) are omitted. Invalid bytes of values (RFC 9110 §5.5) are
    /// replaced by spaces, and surrounding spaces and tabs are removed.
    public static func data(_ data: Data, headers: HeaderPairs) -> MockResponse {
        .data(data, headers: HTTPFields(lenient: headers))
    }
}

extension HeaderPairs {
    /// Creates fields from the fields of a `Request` or `MockResponse`, in their order and with the original case of
    /// their names.
    public init(_ fields: HTTPFields) {
        self.init(fields.map { HeaderPair($0.name.rawName, $0.value) })
    }
}
