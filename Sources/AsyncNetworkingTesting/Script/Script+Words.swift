// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension Script {
    /// Returns a script that sends one response.
    public static func reply(_ reply: Reply) -> Script {
        Script([.reply(reply)])
    }

    /// Returns a script that sends a response with the given parts, by default with status 200 and an empty body.
    public static func reply(
        status: Int = 200, reason: String? = nil, headers: HeaderPairs = [:], body: Reply.Body = .bytes(Data()),
        framing: Reply.Framing = .contentLength, trailers: HeaderPairs = [:]
    ) -> Script {
        .reply(
            Reply(status: status, reason: reason, headers: headers, body: body, framing: framing, trailers: trailers))
    }

    /// Returns a script that responds with JSON text.
    public static func json(_ text: String, status: Int = 200) -> Script {
        .reply(status: status, headers: ["Content-Type": "application/json"], body: .string(text))
    }

    /// Returns a script that responds with plain text.
    public static func text(_ text: String, status: Int = 200) -> Script {
        .reply(status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .string(text))
    }

    /// Returns a script that responds with status 200 and bytes.
    public static func data(_ data: Data, headers: HeaderPairs = [:]) -> Script {
        .reply(headers: headers, body: .bytes(data))
    }

    /// Returns a script that responds with a status and an empty body.
    public static func status(_ status: Int, headers: HeaderPairs = [:]) -> Script {
        .reply(status: status, headers: headers)
    }

    /// Returns a script that responds with a redirect and an empty body.
    public static func redirect(_ status: Int, to location: String) -> Script {
        .status(status, headers: ["Location": location])
    }

    /// Returns a script that responds with `count` bytes of the pattern of ``StubServer/generatedBytes(_:)``.
    public static func generated(_ count: Int64, framing: Reply.Framing = .contentLength) -> Script {
        .reply(body: .generated(count), framing: framing)
    }

    /// Returns a script that sends text unchanged, and then closes the connection.
    public static func raw(_ text: String) -> Script {
        Script([.send(Data(text.utf8)), .end(.close)])
    }

    /// A script that responds with a description of the request as JSON. See ``RequestEcho``.
    public static var echo: Script {
        Script([.respond { Reply(status: 200, headers: ["Content-Type": "application/json"], body: $0.echo) }])
    }

    /// A script that reads the request and never responds.
    public static var hang: Script { Script([.hang]) }

    /// A script that closes the connection without a response.
    public static var close: Script { Script([.end(.close)]) }

    /// Returns a script that declares a `Content-Length` of `declared` bytes, sends `sent` of them, and closes the
    /// connection.
    public static func truncated(declared: Int64, sent: Int64) -> Script {
        Script([
            .reply(Reply(body: .generated(sent), framing: .contentLength(declared: declared))),
            .end(.closeWithoutNotify),
        ])
    }

    /// Returns a script that sends exactly `bytes` bytes of a response, including its head, and then resets the
    /// connection.
    ///
    /// The default response has a head of 44 bytes (`HTTP/1.1 200 OK` and a `Content-Length`) and a body of 1,000,000
    /// bytes.
    public static func resetAfter(bytes: Int64, of response: Script = .generated(1_000_000)) -> Script {
        var script = response
        script.actions.insert(.disconnect(afterBytes: bytes, by: .reset), at: 0)
        return script
    }

    /// Returns a script that sends the head at once, and the body in pieces of `bytes` bytes with pauses between them.
    public static func drip(
        bytes: Int, every interval: Duration, body: Reply.Body = .generated(1024),
        framing: Reply.Framing = .contentLength
    ) -> Script {
        .reply(Reply(body: body, framing: framing, pace: Pace(bytes: bytes, every: interval)))
    }

    /// Returns a script that responds without reading the body, and closes the connection, like a server that rejects
    /// an `Expect` field or a large upload.
    public static func refusingBody(_ status: Int = 417) -> Script {
        Script(
            [.reply(Reply(status: status, headers: ["Connection": "close"])), .end(.close)], readsBodyFirst: false)
    }

    /// Returns a script that performs the actions of this script and then those of `script`, all for the same request.
    public func then(_ script: Script) -> Script {
        var sum = self
        sum.actions += script.actions
        return sum
    }

    /// Returns the script preceded by a delay.
    public func delayed(by duration: Duration) -> Script {
        var script = self
        script.actions.insert(.delay(duration), at: 0)
        return script
    }

    /// The script followed by closing the connection, without `Connection: close` in the response.
    public var thenClose: Script {
        var script = self
        script.actions.append(.end(.close))
        return script
    }

    /// Returns the script with a reaction to `Expect: 100-continue`.
    public func expecting(_ expectation: Expectation) -> Script {
        var script = self
        script.expectation = expectation
        return script
    }
}
