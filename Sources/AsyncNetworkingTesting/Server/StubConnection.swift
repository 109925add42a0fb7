// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

/// A connection whose requests are served one after the other on its own thread.
struct StubConnection: ~Copyable {
    let environment: Environment
    var socket: StubSocket
    var meter = OutputMeter()
    /// The current request.
    var request: RecordedRequest
    /// The frames of a WebSocket client.
    var frames = WebSocketFrameDecoder(of: .client, maximumPayload: 1 << 30)
    /// Whether a WebSocket connection was accepted.
    var isWebSocket = false

    private let listener: StubListener
    private var parser: RequestParser
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var digest = SHA256Digest()
    /// The index of the request in the log; `nil` before it was logged.
    private var logIndex: Int?

    /// The state shared by all connections of a server.
    struct Environment: Sendable {
        let options: StubServer.Options
        let log: Observed<StubServer.Activity>
        let router: StubRouter
        let tls: TLSContext?
    }

    init(_ socket: consuming StubSocket, number: Int, _ environment: Environment, listener: StubListener) {
        self.socket = socket
        self.environment = environment
        self.listener = listener
        parser = RequestParser(maximumHeadSize: environment.options.maximumHeadSize)
        request = RecordedRequest(
            method: "", target: "", version: "", headers: [:], connection: number, positionOnConnection: 0)
    }

    /// Serves requests until the connection ends; must be followed by ``close()``.
    mutating func serve() {
        do throws(End) {
            switch environment.router.takeGreeting() {
            case .serve: break
            case .hang: try pause(nil)
            case .end(let ending): throw .byScript(ending)
            }
            if let context = environment.tls { try startTLS(context) }
            while try readHead() {
                try serveRequest()
                request.positionOnConnection += 1
            }
        } catch {
            end(because: error)
        }
    }

    /// Closes the socket.
    consuming func close() {}

    private mutating func startTLS(_ context: TLSContext) throws(End) {
        do throws(OpenSSLError) {
            request.tls = try socket.startTLS(context)
        } catch {
            environment.log.update { $0.failedHandshakes.append(error.description) }
            throw .peerClosed
        }
    }

    // MARK: One request

    private mutating func serveRequest() throws(End) {
        meter = OutputMeter()
        let script: Script
        switch environment.router.take(method: request.method, path: request.path) {
        case .script(let chosen):
            script = chosen
            if script.readsBodyFirst { try readBody(meeting: script.expectation) }
            writeToLog()
        case .handler(let make):
            try readBody(meeting: .sendContinue())
            writeToLog()
            do {
                script = try make(request)
            } catch {
                script = .text("The handler threw \(error)\n", status: 500)
            }
        }
        var keepsAlive = request.keepsAlive
        for action in script.actions {
            keepsAlive = try perform(action, meeting: script.expectation) && keepsAlive
        }
        if let ending = meter.pendingEnding { throw .byScript(ending) }
        guard keepsAlive else { throw .byScript(.close) }
        try readBody(meeting: .withhold)
    }

    /// Reads a head; returns `false` if the client closed the connection before one.
    private mutating func readHead() throws(End) -> Bool {
        logIndex = nil
        // A reset between two requests does not count as abandoning the previous one.
        request.method = ""
        digest = SHA256Digest()
        while true {
            if case .head(let method, let target, let version, let headers) = try nextPart() {
                let position = request.positionOnConnection
                request = RecordedRequest(
                    method: method, target: target, version: version, headers: headers, connection: request.connection,
                    positionOnConnection: position, tls: request.tls)
                return true
            }
            guard try fill() else {
                guard parser.isIdle else { throw .peerClosed }
                return false
            }
        }
    }

    /// Reads the rest of the body, or until at least `limit` bytes of it have arrived.
    mutating func readBody(upTo limit: Int64? = nil, meeting expectation: Script.Expectation) throws(End) {
        guard !request.isComplete else { return }
        if request.bodyLength == 0, !parser.hasUnreadBytes,
            request.headers.has(token: "100-continue", in: "Expect"), case .sendContinue(let delay) = expectation
        {
            try pause(delay)
            try write(ReplyEncoder.head(version: "HTTP/1.1", status: 100, reason: nil, headers: [:])[...])
        }
        while !request.isComplete, request.bodyLength < limit ?? .max {
            switch try nextPart() {
            case .needsMore:
                guard try fill() else { throw .peerClosed }
            case .body(let bytes):
                request.bodyLength += Int64(bytes.count)
                digest.update(bytes)
                let space = max(0, environment.options.maximumRecordedBody - request.body.count)
                request.body.append(contentsOf: bytes.prefix(space))
            case .end(let trailers):
                request.trailers = trailers
                request.bodySHA256 = digest.finishHexadecimal()
                request.isComplete = true
            case .head:
                throw .badRequest(.requestLine)
            }
        }
        if logIndex != nil { writeToLog() }
    }

    private mutating func nextPart() throws(End) -> RequestParser.Part {
        do throws(RequestParser.ParsingError) {
            return try parser.next()
        } catch {
            throw .badRequest(error)
        }
    }

    /// Reads more bytes; returns `false` at the end of the connection.
    private mutating func fill() throws(End) -> Bool {
        do {
            let count = try socket.receive(into: &buffer)
            parser.append(buffer[..<count])
            return count > 0
        } catch {
            throw .peerClosed
        }
    }

    /// Writes the request, as far as it has arrived, to the log.
    private mutating func writeToLog() {
        let request = request
        let index = logIndex
        logIndex = environment.log.update { activity in
            guard let index else {
                activity.requests.append(request)
                return activity.requests.count - 1
            }
            activity.requests[index] = request
            return index
        }
    }

    // MARK: The end

    private mutating func end(because end: End) {
        switch end {
        case .byScript(let ending):
            finish(ending)
        case .peerClosed:
            readLastFrames()
            guard !request.method.isEmpty, !listener.wasShutDown(request.connection) else { return }
            request.isAbandoned = true
            writeToLog()
        case .badRequest(let failure):
            let reply = Reply(
                status: 400, headers: ["Connection": "close"], body: .string("The stub cannot parse this: \(failure)\n")
            )
            do throws(End) {
                meter = OutputMeter()
                try send(reply, method: "GET")
            } catch {
                return
            }
            finish(.close)
        }
    }

    private mutating func finish(_ ending: Script.Ending) {
        if logIndex != nil { writeToLog() }
        switch ending {
        case .reset:
            socket.prepareReset()
        case .closeWithoutReading:
            break
        case .close, .closeWithoutNotify:
            if ending == .close { socket.announceEnd() }
            // Closing a socket with unread bytes sends RST, which can overtake the response. See RFC 9112 §9.6.
            guard !request.isComplete || parser.hasUnreadBytes || socket.hasUnreadBytes else { return }
            socket.finishSending()
            while (try? socket.receive(into: &buffer)) ?? 0 > 0 {}
        }
    }

    /// The reason why a connection ends.
    enum End: Error {
        /// The script ended it.
        case byScript(Script.Ending)
        /// The client closed it, or the server shut it down.
        case peerClosed
        /// The received bytes are not a valid request.
        case badRequest(RequestParser.ParsingError)
    }
}

extension RecordedRequest {
    /// Whether the connection persists after the request (RFC 9112 §9.3).
    fileprivate var keepsAlive: Bool {
        if headers.has(token: "close", in: "Connection") { return false }
        return version != "HTTP/1.0" || headers.has(token: "keep-alive", in: "Connection")
    }
}
