// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension Script {
    /// Answers with one response.
    public static func reply(_ reply: Reply) -> Script {
        Script([.reply(reply)])
    }

    /// Answers with a response made of these parts.
    public static func reply(
        status: Int = 200, reason: String? = nil, headers: HeaderPairs = [:], body: Reply.Body = .bytes(Data()),
        framing: Reply.Framing = .contentLength, trailers: HeaderPairs = [:]
    ) -> Script {
        .reply(
            Reply(status: status, reason: reason, headers: headers, body: body, framing: framing, trailers: trailers))
    }

    /// Answers with JSON text.
    public static func json(_ text: String, status: Int = 200) -> Script {
        .reply(status: status, headers: ["Content-Type": "application/json"], body: .string(text))
    }

    /// Answers with plain text.
    public static func text(_ text: String, status: Int = 200) -> Script {
        .reply(status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .string(text))
    }

    /// Answers with bytes.
    public static func data(_ data: Data, headers: HeaderPairs = [:]) -> Script {
        .reply(headers: headers, body: .bytes(data))
    }

    /// Answers with a status and an empty body.
    public static func status(_ status: Int, headers: HeaderPairs = [:]) -> Script {
        .reply(status: status, headers: headers)
    }

    /// Answers with a redirect and an empty body.
    public static func redirect(_ status: Int, to location: String) -> Script {
        .status(status, headers: ["Location": location])
    }

    /// Answers with so many of ``StubServer/generatedBytes(_:)``.
    public static func generated(_ count: Int64, framing: Reply.Framing = .contentLength) -> Script {
        .reply(body: .generated(count), framing: framing)
    }

    /// Sends these bytes as they are, then closes.
    public static func raw(_ text: String) -> Script {
        Script([.send(Data(text.utf8)), .end(.close)])
    }

    /// Answers with the request as JSON; see ``RequestEcho``.
    public static var echo: Script {
        Script([.respond { Reply(status: 200, headers: ["Content-Type": "application/json"], body: $0.echo) }])
    }

    /// Reads the request and never answers.
    public static var hang: Script { Script([.hang]) }

    /// Closes the connection without an answer.
    public static var close: Script { Script([.end(.close)]) }

    /// Announces `declared` bytes, sends `sent` of them, and closes.
    public static func truncated(declared: Int64, sent: Int64) -> Script {
        Script([
            .reply(Reply(body: .generated(sent), framing: .contentLength(declared: declared))),
            .end(.closeWithoutNotify),
        ])
    }

    /// Sends exactly so many bytes of a response, head included, then resets the connection.
    ///
    /// `response` is what is cut; by default a head of 44 bytes (`HTTP/1.1 200 OK` and a `Content-Length`) and
    /// a body of 1,000,000.
    public static func resetAfter(bytes: Int64, of response: Script = .generated(1_000_000)) -> Script {
        var script = response
        script.actions.insert(.cut(afterBytes: bytes, by: .reset), at: 0)
        return script
    }

    /// Sends the head at once, and the body so many bytes at a time.
    public static func drip(
        bytes: Int, every interval: Duration, body: Reply.Body = .generated(1024),
        framing: Reply.Framing = .contentLength
    ) -> Script {
        .reply(Reply(body: body, framing: framing, pace: Pace(bytes: bytes, every: interval)))
    }

    /// Answers without reading the body, and closes: what a server does that refuses an `Expect` or a large upload.
    public static func refusingBody(_ status: Int = 417) -> Script {
        Script(
            [.reply(Reply(status: status, headers: ["Connection": "close"])), .end(.close)], readsBodyFirst: false)
    }

    /// Does the actions of this script before those of `script`, for its request too.
    public func then(_ script: Script) -> Script {
        var sum = self
        sum.actions += script.actions
        return sum
    }

    /// Waits before anything else.
    public func delayed(by duration: Duration) -> Script {
        var script = self
        script.actions.insert(.delay(duration), at: 0)
        return script
    }

    /// Closes the connection afterwards, without having announced it.
    public var thenClose: Script {
        var script = self
        script.actions.append(.end(.close))
        return script
    }

    /// Meets `Expect: 100-continue` in this way.
    public func expecting(_ expectation: Expectation) -> Script {
        var script = self
        script.expectation = expectation
        return script
    }
}
