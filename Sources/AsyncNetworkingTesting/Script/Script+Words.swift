// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension Script {
    /// Returns a script that sends one response and keeps the connection open, unless the request or the response
    /// requires closing it, for example by `Connection: close`.
    public static func reply(_ reply: Reply) -> Script {
        Script([.reply(reply)])
    }

    /// Returns a script that sends one response, made from its parts, and keeps the connection open unless the request
    /// or the response requires closing it.
    ///
    /// With the statuses 1xx, 204 and 304, and in response to HEAD, no body is sent; see ``Reply`` for each part.
    ///
    /// - Parameters:
    ///   - status: The status code; 200 by default.
    ///   - reason: The reason phrase; `nil`, the default, for the standard one, empty to omit it.
    ///   - headers: The header fields, to which the server appends the one that the framing requires, if any; empty by
    ///     default.
    ///   - body: The body; empty by default.
    ///   - framing: The framing of the body; ``Reply/Framing/contentLength`` by default.
    ///   - trailers: The trailer fields, sent only with a chunked body; empty by default.
    public static func reply(
        status: Int = 200, reason: String? = nil, headers: HeaderPairs = [:], body: Reply.Body = .bytes(Data()),
        framing: Reply.Framing = .contentLength, trailers: HeaderPairs = [:]
    ) -> Script {
        .reply(
            Reply(status: status, reason: reason, headers: headers, body: body, framing: framing, trailers: trailers))
    }

    /// Returns a script that responds with JSON text and `Content-Type: application/json`, by default with status 200.
    /// The text is sent in UTF-8 and not validated.
    public static func json(_ text: String, status: Int = 200) -> Script {
        .reply(status: status, headers: ["Content-Type": "application/json"], body: .string(text))
    }

    /// Returns a script that responds with text in UTF-8 and `Content-Type: text/plain; charset=utf-8`, by default with
    /// status 200.
    public static func text(_ text: String, status: Int = 200) -> Script {
        .reply(status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .string(text))
    }

    /// Returns a script that responds with status 200 and bytes.
    ///
    /// - Parameters:
    ///   - data: The body.
    ///   - headers: The header fields, to which the server appends only `Content-Length`; empty by default.
    public static func data(_ data: Data, headers: HeaderPairs = [:]) -> Script {
        .reply(headers: headers, body: .bytes(data))
    }

    /// Returns a script that responds with a status and an empty body, by default without header fields but
    /// `Content-Length`, which responses with status 1xx, 204 and 304 and those to HEAD do not have.
    public static func status(_ status: Int, headers: HeaderPairs = [:]) -> Script {
        .reply(status: status, headers: headers)
    }

    /// Returns a script that responds with a redirect and an empty body.
    ///
    /// - Parameters:
    ///   - status: The status code, such as 302.
    ///   - location: The value of `Location`, sent unchanged: a URL, relative or absolute, or anything else.
    public static func redirect(_ status: Int, to location: String) -> Script {
        .status(status, headers: ["Location": location])
    }

    /// Returns a script that responds with status 200 and bytes that a server generates while it sends them; a
    /// ``MockTransport`` holds them in memory.
    ///
    /// - Parameters:
    ///   - count: The number of bytes of the pattern of ``StubServer/generatedBytes(_:)``; a negative number counts as
    ///     0.
    ///   - framing: The framing of the body; ``Reply/Framing/contentLength`` by default.
    public static func generated(_ count: Int64, framing: Reply.Framing = .contentLength) -> Script {
        .reply(body: .generated(count), framing: framing)
    }

    /// Returns a script that reads the request, sends a text instead of a response, and closes the connection in an
    /// orderly way (``Ending/close``).
    ///
    /// The text is sent unchanged in UTF-8, and need not be valid HTTP. With a ``MockTransport``, the exchange fails
    /// with `TransportError.Reason.invalidResponse`.
    public static func raw(_ text: String) -> Script {
        Script([.send(Data(text.utf8)), .end(.close)])
    }

    /// A script that responds with status 200 and a JSON description of the request; decode it as ``RequestEcho``. The
    /// request body in it is limited to ``StubServer/Options/maximumRecordedBody`` bytes, with a ``MockTransport`` not
    /// at all.
    public static var echo: Script {
        Script([.respond { Reply(status: 200, headers: ["Content-Type": "application/json"], body: $0.echo) }])
    }

    /// A script that reads the request and never responds.
    ///
    /// It ends when the client closes the connection or its sending side, or the server stops; with a
    /// ``MockTransport``, when the task is cancelled or the transport is shut down.
    public static var hang: Script { Script([.hang]) }

    /// A script that reads the request and closes the connection in an orderly way (``Ending/close``), without a
    /// response. With a ``MockTransport``, the exchange fails with `TransportError.Reason.connectionLost`.
    public static var close: Script { Script([.end(.close)]) }

    /// Returns a script that responds with status 200 and closes the connection before the end of the declared body,
    /// without `close_notify` if TLS is used. With a ``MockTransport``, receiving the body fails with
    /// `TransportError.Reason.connectionLost`; a response to HEAD has no body and does not fail.
    ///
    /// - Parameters:
    ///   - declared: The value of `Content-Length`.
    ///   - sent: The number of bytes of the pattern of ``StubServer/generatedBytes(_:)`` that are sent, which should be
    ///     less than `declared`; a negative number counts as 0. Otherwise the response is complete before the
    ///     connection is closed.
    public static func truncated(declared: Int64, sent: Int64) -> Script {
        Script([
            .reply(Reply(body: .generated(sent), framing: .contentLength(declared: declared))),
            .end(.closeWithoutNotify),
        ])
    }

    /// Returns a script that sends the beginning of a response and then resets the connection (``Ending/reset``).
    ///
    /// The default response has a head of 44 bytes (`HTTP/1.1 200 OK` and a `Content-Length`) and a body of 1,000,000
    /// bytes. With a ``MockTransport``, the exchange fails with `TransportError.Reason.invalidResponse`.
    ///
    /// - Parameters:
    ///   - bytes: The exact number of bytes to send, including those of the head, and counted before encryption; a
    ///     negative number counts as 0. A response with no more bytes than that is sent completely before the reset.
    ///   - response: The script whose output is cut; 1,000,000 generated bytes by default. If it ends the connection
    ///     itself before that number of bytes, as by ``Action/end(_:)``, there is no reset.
    public static func resetAfter(bytes: Int64, of response: Script = .generated(1_000_000)) -> Script {
        var script = response
        script.actions.insert(.disconnect(afterBytes: bytes, by: .reset), at: 0)
        return script
    }

    /// Returns a script that responds with status 200: it sends the head at once, and the body in small pieces with
    /// pauses between them.
    ///
    /// A ``MockTransport`` ignores `bytes`: it pauses before each chunk, including the first, and its chunks have at
    /// most the size of ``Reply/Framing/chunked(size:)``, or else 64,256 bytes.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes of a piece, including those of chunk sizes; a value below 1 counts as 1.
    ///   - interval: The pause between two pieces; zero or a negative duration for none.
    ///   - body: The body; 1,024 bytes of the pattern of ``StubServer/generatedBytes(_:)`` by default.
    ///   - framing: The framing of the body; ``Reply/Framing/contentLength`` by default.
    public static func drip(
        bytes: Int, every interval: Duration, body: Reply.Body = .generated(1024),
        framing: Reply.Framing = .contentLength
    ) -> Script {
        .reply(Reply(body: body, framing: framing, pace: Pace(bytes: bytes, every: interval)))
    }

    /// Returns a script that responds without reading the body, and closes the connection, like a server that rejects
    /// an `Expect` field or a large upload.
    ///
    /// The response has `Connection: close` and an empty body. The server sends it and closes its sending side at once;
    /// what the client still sends is discarded until it closes the connection. The server has already read the body if
    /// the function of a route or of a fallback returns the script, and so has a ``MockTransport``.
    ///
    /// - Parameter status: The status code; 417 by default (RFC 9110 §15.5.18).
    public static func refusingBody(_ status: Int = 417) -> Script {
        Script(
            [.reply(Reply(status: status, headers: ["Connection": "close"])), .end(.close)], readsBodyFirst: false)
    }

    /// Returns a script that performs the actions of this script and then those of `script`, all for the same request.
    ///
    /// The result has ``readsBodyFirst`` and ``expectation`` of this script. If this script ends the connection, the
    /// actions of `script` are not performed.
    public func then(_ script: Script) -> Script {
        var sum = self
        sum.actions += script.actions
        return sum
    }

    /// Returns the script preceded by a delay, zero or negative for none, which begins after the request body was read
    /// if ``readsBodyFirst`` is `true`.
    public func delayed(by duration: Duration) -> Script {
        var script = self
        script.actions.insert(.delay(duration), at: 0)
        return script
    }

    /// The script followed by closing the connection in an orderly way (``Ending/close``), which the response does not
    /// announce with `Connection: close`.
    public var thenClose: Script {
        var script = self
        script.actions.append(.end(.close))
        return script
    }

    /// Returns the script with another ``expectation``, its reaction to `Expect: 100-continue`: to send `100 Continue`,
    /// at once or later, or to withhold it.
    public func expecting(_ expectation: Expectation) -> Script {
        var script = self
        script.expectation = expectation
        return script
    }
}
