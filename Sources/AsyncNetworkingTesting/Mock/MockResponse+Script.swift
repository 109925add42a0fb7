// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
import HTTPTypes

extension MockResponse {
    /// Returns a response with status 200 and server-sent events (`text/event-stream`; WHATWG HTML, “Server-sent
    /// events”), each in a chunk of its own.
    ///
    /// `Content-Length` is the size of the body, and one byte more if an interruption follows the events.
    ///
    /// - Parameters:
    ///   - events: The events. Each line of their data is sent as a `data:` line. An event without an ID is sent
    ///     without `id:`, and one of type `message` without `event:`. IDs and types are not checked.
    ///   - retry: The reconnection time, sent as a `retry` line in a chunk before the events, truncated to whole
    ///     milliseconds; `nil`, the default, for none. A negative number of milliseconds is sent, too; clients
    ///     ignore it.
    ///   - interval: The pause on the transport's clock after each event, including the last one, and after the `retry`
    ///     line; zero, the default, or a negative duration for none.
    ///   - ending: What follows the events; the end of the response by default.
    public static func events(
        _ events: [ServerSentEvent], retry: Duration? = nil, every interval: Duration = .zero,
        then ending: Script.StreamEnding = .complete
    ) -> MockResponse {
        MockResponse(.events(events, retry: retry, every: interval, then: ending))
    }

    /// Returns a response with status 200 and pieces of text, each in a chunk of its own: for event streams, JSON lines
    /// and others, valid or not.
    ///
    /// `Content-Length` is the size of the body, and one byte more if an interruption follows the pieces.
    ///
    /// - Parameters:
    ///   - pieces: The pieces of the body, sent in UTF-8; empty ones are skipped.
    ///   - type: The `Content-Type`.
    ///   - interval: The pause on the transport's clock after each piece, including the last one; zero, the default, or
    ///     a negative duration for none.
    ///   - ending: What follows the pieces; the end of the response by default.
    public static func stream(
        _ pieces: [String], type: String, every interval: Duration = .zero, then ending: Script.StreamEnding = .complete
    ) -> MockResponse {
        MockResponse(.stream(pieces, type: type, every: interval, then: ending))
    }

    /// Creates the response of a script that does not depend on the request.
    package init(_ script: Script) {
        self.init(
            script,
            answering: RecordedRequest(
                method: "GET", target: "/", version: "HTTP/1.1", headers: [:], connection: 0, positionOnConnection: 0))
    }

    /// Creates the response that a client would receive from a server with a script.
    init(_ script: Script, answering request: RecordedRequest) {
        self.init([])
        append(script, answering: request)
    }

    private mutating func append(_ script: Script, answering request: RecordedRequest) {
        var hasHead = false
        /// The sent and the declared number of body bytes, if fewer are sent than declared.
        var missing: (sent: Int64, declared: Int64)?
        for (index, action) in script.actions.enumerated() {
            switch action {
            case .readBody:
                break
            case .informational(let status, let headers):
                steps.append(.informational(HTTPResponse.Status(clamping: status), HTTPFields(lenient: headers)))
            case .reply(let reply):
                missing = append(reply, to: request)
                hasHead = true
            case .respond(let makeReply):
                missing = append(makeReply(request), to: request)
                hasHead = true
            case .delay(let duration):
                steps.append(.pause(duration))
            case .wait(let gate):
                steps.append(.wait(gate))
            case .hang:
                steps.append(.hang)
            case .end:
                guard hasHead else { return steps.append(.lost(.beforeResponse)) }
                guard let missing, missing.sent < missing.declared else { return }
                return steps.append(.lost(.inBody(received: missing.sent, expected: missing.declared)))
            case .send(let data) where hasHead:
                steps.append(.chunk(data))
                missing?.sent += Int64(data.count)
            case .acceptWebSocket(let headers) where !hasHead:
                let fields = HeaderPairs.accepting(webSocketKey: Self.webSocketKey, adding: headers)
                webSocketActions = Array(script.actions[(index + 1)...])
                return steps.append(.head(.switchingProtocols, HTTPFields(lenient: fields)))
            case .send, .generate, .pace, .disconnect, .acceptWebSocket, .message, .echoMessages, .closeWebSocket:
                return steps.append(.fail(TransportError(.invalidResponse(.notHTTP))))
            }
        }
        if let missing, missing.sent < missing.declared { steps.append(.hang) }
    }

    /// The `Sec-WebSocket-Key` that the response answers: the example of RFC 6455 §1.3.
    static let webSocketKey = "dGhlIHNhbXBsZSBub25jZQ=="

    /// Appends the steps of a reply. Returns the sent and the declared number of body bytes if fewer are sent,
    /// otherwise `nil`.
    private mutating func append(_ reply: Reply, to request: RecordedRequest) -> (sent: Int64, declared: Int64)? {
        let encoder = ReplyEncoder(reply, method: request.method)
        steps.append(.head(HTTPResponse.Status(clamping: reply.status), HTTPFields(lenient: encoder.headers)))
        guard encoder.sendsBody else { return nil }
        encoder.forEachPiece { piece in
            if let pace = reply.pace { steps.append(.pause(pace.interval)) }
            steps.append(.chunk(Data(piece)))
        }
        if case .chunked = reply.framing { trailers = HTTPFields(lenient: reply.trailers) }
        guard case .contentLength(let declared?) = reply.framing, declared > reply.body.count else { return nil }
        return (reply.body.count, declared)
    }
}

extension MockResponse.Step {
    fileprivate static func lost(_ loss: TransportError.ConnectionLossPhase) -> MockResponse.Step {
        .fail(TransportError(.connectionLost(loss)))
    }
}

extension HTTPResponse.Status {
    /// Creates a status with a code clamped to 0...999; other codes would trap.
    fileprivate init(clamping code: Int) {
        self.init(code: min(max(0, code), 999))
    }
}

extension HTTPFields {
    /// Creates fields from the pairs whose names are tokens.
    init(lenient pairs: HeaderPairs) {
        self.init()
        for pair in pairs {
            guard let name = HTTPField.Name(pair.name) else { continue }
            append(HTTPField(name: name, value: pair.value))
        }
    }
}

extension RecordedRequest {
    /// Creates a recorded request from a mock's request, as a server would have received it.
    init(_ received: MockTransport.ReceivedRequest) {
        let url = received.request.url
        let path = url.path(percentEncoded: true)
        self.init(
            method: received.request.method.rawValue,
            target: (path.isEmpty ? "/" : path) + (url.query(percentEncoded: true).map { "?" + $0 } ?? ""),
            version: "HTTP/1.1",
            headers: HeaderPairs(received.request.headers), connection: 0,
            positionOnConnection: 0)
        body = received.body
        bodyLength = Int64(received.body.count)
        trailers = HeaderPairs(received.trailers)
        isComplete = true
    }
}
