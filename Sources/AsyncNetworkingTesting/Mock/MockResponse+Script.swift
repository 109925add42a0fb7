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

    /// How much of the response was sent.
    private enum Progress {
        case nothing
        case interim
        /// The head, and a part of the body, or all of it.
        case head(BodyProgress)
    }

    private mutating func append(_ script: Script, answering request: RecordedRequest) {
        var progress = Progress.nothing
        for (index, action) in script.actions.enumerated() {
            switch (action, progress) {
            case (.readBody, _):
                break
            case (.informational(let status, let headers), _):
                append(interim: status, headers, to: &progress)
            case (.reply(let reply), _):
                append(reply, to: request, &progress)
            case (.respond(let makeReply), _):
                append(makeReply(request), to: request, &progress)
            case (.delay(let duration), _):
                steps.append(.pause(duration))
            case (.wait, .head(let body)) where body.isComplete, (.hang, .head(let body)) where body.isComplete:
                // The client does not wait for the rest of the script.
                break
            case (.wait(let gate), _):
                steps.append(.wait(gate))
            case (.hang, _):
                steps.append(.hang)
            case (.end, .nothing), (.end(.reset), .interim):
                return steps.append(.lost(.beforeResponse))
            case (.end, .interim):
                return steps.append(.invalid(.noFinalResponse))
            case (.end(let ending), .head(let body)):
                return steps.append(contentsOf: body.end(by: ending))
            case (.send(let data), .head(var body)):
                steps.append(.chunk(body.receive(data)))
                progress = .head(body)
            case (.acceptWebSocket(let headers), .nothing), (.acceptWebSocket(let headers), .interim):
                let fields = HeaderPairs.accepting(webSocketKey: Self.webSocketKey, adding: headers)
                webSocketActions = Array(script.actions[(index + 1)...])
                return steps.append(.head(.switchingProtocols, HTTPFields(lenient: fields)))
            case (.send, _), (.generate, _), (.pace, _), (.disconnect, _), (.acceptWebSocket, _), (.message, _),
                (.echoMessages, _), (.closeWebSocket, _):
                return steps.append(.invalid(.notHTTP))
            }
        }
        if case .head(let body) = progress { steps += body.end(by: body.isClosed ? .close : nil) }
    }

    /// The `Sec-WebSocket-Key` that the response answers: the example of RFC 6455 §1.3.
    static let webSocketKey = "dGhlIHNhbXBsZSBub25jZQ=="

    /// Appends an interim response. A client that receives a switch to another protocol, for which it has not asked,
    /// expects nothing more.
    private mutating func append(interim status: Int, _ headers: HeaderPairs, to progress: inout Progress) {
        steps.append(.informational(HTTPResponse.Status(clamping: status), HTTPFields(lenient: headers)))
        if status == 101 { steps.append(.invalid(.noFinalResponse)) }
        if case .nothing = progress { progress = .interim }
    }

    /// Appends the steps of a reply.
    private mutating func append(_ reply: Reply, to request: RecordedRequest, _ progress: inout Progress) {
        let encoder = ReplyEncoder(reply, method: request.method)
        guard !(100..<200).contains(reply.status) else {
            return append(interim: reply.status, encoder.headers, to: &progress)
        }
        let length: Int64?
        do throws(TransportError) {
            length = try encoder.receivedLength()
        } catch {
            return steps.append(.fail(error))
        }
        steps.append(.head(HTTPResponse.Status(clamping: reply.status), HTTPFields(lenient: encoder.headers)))
        var body = BodyProgress(
            length: encoder.sendsBody ? length : 0,
            isClosed: encoder.mustClose || request.headers.has(token: "close", in: "Connection"))
        if encoder.sendsBody {
            encoder.forEachPiece { piece in
                if let pace = reply.pace { steps.append(.pause(pace.interval)) }
                steps.append(.chunk(body.receive(Data(piece))))
            }
            if case .chunked = reply.framing { trailers = HTTPFields(lenient: reply.trailers) }
        }
        progress = .head(body)
    }
}

/// The part of a body that a client has received.
private struct BodyProgress {
    /// The length by the header fields, or that of the chunks; `nil` if the end of the connection ends the body.
    let length: Int64?
    /// Whether the connection is closed after the script in any case.
    let isClosed: Bool
    private var received: Int64 = 0
    /// Whether the client needs no more bytes.
    var isComplete: Bool { received == length }

    init(length: Int64?, isClosed: Bool) {
        self.length = length
        self.isClosed = isClosed
    }

    /// Receives bytes; returns those that belong to the body.
    mutating func receive(_ data: Data) -> Data {
        let part = length.map { data.prefix(Int(clamping: $0 - received)) } ?? data
        received += Int64(part.count)
        return part
    }

    /// The steps after the last bytes, given the end of the connection; `nil` if it stays open.
    func end(by ending: Script.Ending?) -> [MockResponse.Step] {
        if isComplete { return [] }
        guard let ending else { return [.hang] }
        // The end of the connection is that of the body, unless the connection is lost.
        return length == nil && ending != .reset ? [] : [.lost(.inBody(received: received, expected: length))]
    }
}

extension ReplyEncoder {
    /// Returns the length of the body that a client receives, by the header fields that are sent (RFC 9112 §6.3); `nil`
    /// if the end of the connection ends it.
    ///
    /// - Throws: An `invalidResponse` if they are not valid, or if the body has the chunked coding already, which would
    ///   have to be decoded.
    fileprivate func receivedLength() throws(TransportError) -> Int64? {
        let headers = headers
        let lengths = headers.values("Content-Length").flatMap { $0.split(at: ",") }
            .map { Int64(digits: $0.trimmingBlanks) }
        guard Set(lengths).count <= 1, !lengths.contains(nil) else {
            throw TransportError(.invalidResponse(.contentLength))
        }
        let codings = headers.values("Transfer-Encoding")
        guard codings.allSatisfy({ $0.lowercased() == "chunked" }) else {
            throw TransportError(.invalidResponse(.framing))
        }
        if codings.isEmpty { return lengths.first ?? nil }
        guard case .chunked = reply.framing else { throw TransportError(.invalidResponse(.notHTTP)) }
        return reply.body.count
    }
}

extension MockResponse.Step {
    fileprivate static func lost(_ loss: TransportError.ConnectionLossPhase) -> MockResponse.Step {
        .fail(TransportError(.connectionLost(loss)))
    }

    fileprivate static func invalid(_ failure: TransportError.ResponseFailure) -> MockResponse.Step {
        .fail(TransportError(.invalidResponse(failure)))
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
