// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// An exchange of a ``MockTransport``, and the source of its response body.
final class MockExchange: ResponseBodySource {
    private let transport: MockTransport
    private let request: Request
    private let limits: MockTimeLimits
    private let events: (any ExchangeEventSink)?
    private let state = Observed(State())

    init(
        transport: MockTransport, request: Request, limits: MockTimeLimits, events: (any ExchangeEventSink)?
    ) {
        self.transport = transport
        self.request = request
        self.limits = limits
        self.events = events
    }

    // MARK: The request

    /// Reads the body of the request, as far as the server receives it.
    func receiveRequest(_ reception: MockTransport.Reception) async throws -> MockTransport.ReceivedRequest {
        let length = declaredLength
        for field in request.headers { _ = try field.isSent(withBodyOf: length) }
        var body: Data
        if case .writer = request.body.content, case .answeredMeanwhile(let count, let receive) = reception {
            body = try await readBody(inBackgroundAfter: count, receive)
        } else {
            body = try await readBody(reception)
        }
        if let limit = reception.limit, body.count >= limit {
            body = body.prefix(limit)
            try await stop(reception)
        }
        if !body.isEmpty {
            let count = Int64(body.count)
            state.update { $0.metrics.requestBodyBytes = count }
            events?.receive(.uploadProgress(TransferProgress(completedBytes: count, totalBytes: request.body.length)))
        }
        do {
            let trailers = try request.trailers?().checkedAsTrailers() ?? [:]
            return MockTransport.ReceivedRequest(request: request, body: body, trailers: trailers)
        } catch {
            throw TransportError(.requestBody(.source(error)))
        }
    }

    /// The length of the body that a transport declares; `nil` if it is unknown.
    private var declaredLength: Int64? {
        // Trailers require chunked transfer coding (RFC 9112 §7.1.2).
        guard request.trailers == nil else { return nil }
        if case .file(let path) = request.body.content, case .known(let size)? = try? FileLength(ofFileAt: path) {
            return size
        }
        return request.body.length
    }

    /// Performs what a server does that reads no further.
    private func stop(_ reception: MockTransport.Reception) async throws {
        switch reception {
        case .complete, .answered, .answeredMeanwhile: break
        case .failing(_, let error): throw error
        case .silent:
            try await limits.wait(in: .request, isSeen: true) { [transport, request] in
                try await transport.hang(request)
            }
        }
    }

    private func readBody(_ reception: MockTransport.Reception) async throws -> Data {
        try await request.body.gate?()
        switch request.body.content {
        case .none:
            return Data()
        case .bytes(let data):
            return data
        case .file(let path):
            do {
                if case .known = try FileLength(ofFileAt: path) { return try Data(contentsOf: URL(filePath: path)) }
            } catch {
                throw TransportError(.requestBody(.file(path: path, reason: "\(error)")))
            }
            // A pipe may have no bytes yet.
            let write: BodyWriting = { writer in
                do {
                    try await UnsizedFile.forEachChunk(of: path, RequestBody.chunkSize) { chunk in
                        try await writer.write(Data(chunk))
                    }
                } catch let error as SystemError {
                    throw TransportError.RequestBodyFailure.file(path: path, reason: error.description)
                }
            }
            return try await readBody(nil, write, upTo: reception.limit)
        case .writer(let length, _, let write):
            return try await readBody(length, write, upTo: reception.limit)
        }
    }

    /// Reads a body until a number of bytes has arrived, and the rest while the exchange is open.
    private func readBody(inBackgroundAfter count: Int, _ receive: @escaping @Sendable (Data) -> Void) async throws
        -> Data
    {
        state.update { $0.isSending = true }
        // Ends when the exchange is closed.
        let task = Task(executorPreference: currentTaskExecutor) { [self] in
            let result: Result<Data, any Error>
            do { result = .success(try await readBody(.complete)) } catch { result = .failure(error) }
            if case .success(let body) = result { receive(body) }
            state.update { state in
                state.isSending = false
                if case .failure(let error) = result { state.fail(error) }
            }
        }
        state.update { $0.sending = task }
        try await state.wait { $0.sent.count >= count || !$0.isSending }
        if let failure = state.value.failure { throw failure }
        return state.value.sent
    }

    /// Waits until the rest of the request's body was sent, if that has an end and can be sent again: without that, a
    /// complete response ends the exchange, as on libcurl's transport.
    func finishRequest() async throws {
        guard state.value.isSending, request.body.length != nil, request.body.isReplayable else { return }
        try await limits.wait(in: .request, isActive: true) { [state] in try await state.wait { !$0.isSending } }
    }

    private func readBody(_ length: Int64?, _ write: @escaping BodyWriting, upTo limit: Int?) async throws -> Data {
        try request.body.checkLength()
        let written = Lock(Data())
        let isFull: @Sendable () -> Bool = { limit.map { limit in written.withLock { $0.count >= limit } } ?? false }
        let isCancelled = Lock(false)
        let gate = request.body.gate.map { gate in
            { @Sendable in
                do {
                    try await gate()
                } catch {
                    isCancelled.withLock { $0 = true }
                    throw error
                }
            }
        }
        let send = { @Sendable [state] in
            let writer = RequestBodyWriter { chunk in
                let count = written.withLock { written in
                    written.append(chunk)
                    return Int64(written.count)
                }
                if let length, count > length { throw TransportError.RequestBodyFailure.tooLong(declared: length) }
                state.update { if $0.isSending { $0.sent.append(chunk) } }
                // The server reads no further: the source is ended as by the end of an exchange.
                if isFull() { throw CancellationError() }
            }
            do {
                try await write(writer.gated(by: gate))
            } catch {
                try Task.checkCancellation()
                guard !isFull() else { return }
                guard !(error is CancellationError && isCancelled.withLock(\.self)) else { throw error }
                throw TransportError(.requestBody(error as? TransportError.RequestBodyFailure ?? .source(error)))
            }
        }
        try await limits.wait(in: .request, isActive: true) { [transport, request] in
            try await transport.untilEnd(of: request, send)
        }
        let body = written.withLock { $0 }
        guard !isFull() else { return body }
        if let length {
            let count = Int64(body.count)
            guard count >= length else {
                throw TransportError(.requestBody(.tooShort(declared: length, produced: count)))
            }
            guard count == length else {
                throw TransportError(.requestBody(.tooLong(declared: length)))
            }
        }
        return body
    }

    // MARK: The response

    /// Sets the response to perform.
    func begin(_ response: MockResponse) {
        state.update { state in
            state.steps = response.steps[...]
            state.trailers = response.trailers
            state.webSocketActions = response.webSocketActions
        }
    }

    /// Opens the WebSocket connection of a script, whose head was performed; `nil` for another response.
    ///
    /// - Throws: `TransportError` if the request does not ask for the connection, or its response does not fit.
    func openWebSocket(_ head: ResponseHead) throws(TransportError) -> (any WebSocketLink)? {
        guard let actions = state.value.webSocketActions else { return nil }
        guard let options = request.webSocketOptions else { throw TransportError(.invalidResponse(.notHTTP)) }
        do throws(WebSocketViolation) {
            let agreement = try WebSocketAgreement(
                by: head, for: options, accept: HeaderPairs.webSocketAccept(for: MockResponse.webSocketKey))
            let socket = MockWebSocket(agreement, options, limits: limits)
            let server = MockWebSocketServer(
                socket, performing: actions, for: request, transport: transport, limits: limits)
            // Ends when the exchange is closed.
            let task = Task(executorPreference: currentTaskExecutor) { await server.run() }
            state.update { $0.server = task }
            return socket
        } catch {
            throw TransportError(.invalidResponse(.webSocket(error.reason)))
        }
    }

    /// Performs the steps up to the head and returns it.
    func nextHead() async throws -> ResponseHead {
        while let step = try await nextStep() {
            switch step {
            case .informational(let status, let headers):
                limits.noteActivity()
                events?.receive(.informational(ResponseHead(status: status, headers: headers, url: request.url)))
            case .head(let status, var headers):
                limits.noteActivity()
                // It is not the length of the content, which the transfer coding delimits.
                if headers.contains(.transferEncoding) { headers[.contentLength] = nil }
                let hasBody = request.method != .head && status != .noContent && status != .notModified
                let head = ResponseHead(status: status, headers: headers, url: request.url)
                state.update { state in
                    if !hasBody { state.steps = [] }
                    // The length of an encoded body is not that of the decoded one, which the response has.
                    let isDecoded = head.isDecodable && request.options?.decodesContent != false
                    state.totalBytes = isDecoded ? nil : headers[.contentLength].flatMap(Int64.init)
                }
                events?.receive(.head(head))
                return head
            case .chunk:
                throw TransportError(.invalidResponse(.notHTTP))
            case .pause, .wait, .hang, .fail:
                if state.value.isSending {
                    try await waitUnlessEnded(step, in: .responseHead)
                } else {
                    try await wait(step, in: .responseHead)
                }
            }
        }
        try await wait(.hang, in: .responseHead)
        throw TransportError(.shutDown)
    }

    /// Whether the body is long, or is not complete soon after the head, as libcurl's transport defines it.
    var takesLong: Bool {
        var (time, size) = (Duration.zero, 0)
        for step in state.value.steps {
            switch step {
            case .wait, .hang: return true
            case .pause(let duration): time += duration
            case .chunk(let data): size += data.count
            case .informational, .head, .fail: break
            }
        }
        return time >= .milliseconds(100) || size > 64 << 10
    }

    func next() async throws -> Data? {
        do {
            return try await readNext()
        } catch {
            fail(error)
            throw error
        }
    }

    /// Fails the exchange after bytes that are read again, if any, unless the body was read to its end.
    func fail(_ error: any Error, after bytes: Data? = nil) {
        state.update { $0.fail(error, after: bytes) }
    }

    private func readNext() async throws -> Data? {
        if let bytes = state.update({ $0.takeUnread() }) { return bytes }
        while let step = try await nextStep() {
            switch step {
            case .chunk(let data):
                guard !data.isEmpty else { continue }
                limits.noteActivity()
                let progress = state.update { state in
                    state.metrics.responseBodyBytes += Int64(data.count)
                    return TransferProgress(
                        completedBytes: state.metrics.responseBodyBytes, totalBytes: state.totalBytes)
                }
                events?.receive(.downloadProgress(progress))
                return data
            case .informational, .head:
                throw TransportError(.invalidResponse(.framing))
            case .pause, .wait, .hang, .fail:
                try await waitUnlessEnded(step, in: .responseBody)
            }
        }
        if request.endsWithResponse { try await finishRequest() }
        state.update { $0.isAtEnd = true }
        return nil
    }

    var ending: ResponseEnding? {
        let state = state.value
        return state.isAtEnd ? ResponseEnding(trailers: state.trailers, metrics: state.metrics) : nil
    }

    func cancel() {
        state.update { state in
            state.fail(CancellationError(), after: Data())
            return state.server
        }?.cancel()
    }

    func close() async {
        let (server, sending, metrics) = state.update { state in
            state.steps = []
            // As libcurl's transport: the scope of the response is over.
            state.fail(CancellationError(), after: Data())
            defer { state.isClosed = true }
            return (state.server, state.sending, state.isClosed ? nil : state.metrics)
        }
        for task in [server, sending] { task?.cancel() }
        for task in [server, sending] { await task?.value }
        if let metrics { events?.receive(.finished(metrics)) }
    }

    private func nextStep() async throws -> MockResponse.Step? {
        try Task.checkCancellation()
        try transport.checkRunning(request)
        return try state.update { state in
            Result {
                if let failure = state.failure { throw failure }
                return state.steps.popFirst()
            }
        }.get()
    }

    /// Performs such a step unless the exchange ends before: when the body is cancelled or closed, or the source of the
    /// request's body fails.
    private func waitUnlessEnded(_ step: MockResponse.Step, in phase: TransportError.TimeoutPhase) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await self.wait(step, in: phase) }
            group.addTask { [state] in try await state.wait { $0.failure != nil } }
            try await group.next()
        }
    }

    /// Performs a step that is not a part of the response.
    private func wait(_ step: MockResponse.Step, in phase: TransportError.TimeoutPhase) async throws {
        switch step {
        case .pause(let duration):
            try await limits.wait(in: phase) { [transport] in try await transport.pause(duration) }
        case .wait(let gate): try await limits.wait(in: phase) { try await gate.wait() }
        case .hang:
            try await limits.wait(in: phase, isSeen: true) { [transport, request] in try await transport.hang(request) }
        case .fail(let error): throw error
        case .informational, .head, .chunk: break
        }
    }

    private struct State {
        var steps: ArraySlice<MockResponse.Step> = []
        var trailers: HTTPFields = [:]
        var webSocketActions: [Script.Action]?
        var metrics = TransferMetrics()
        var totalBytes: Int64?
        var isAtEnd = false
        /// The error with which the body has failed, by which all later reads fail, too.
        private(set) var failure: (any Error)?
        /// The bytes before the failure that were collected, and are read before it.
        private var unread = Data()
        var isClosed = false
        /// The bytes of the request's body that have arrived while it is sent in the background.
        var sent = Data()
        var isSending = false
        var sending: Task<Void, Never>?
        /// The server's end of a WebSocket connection.
        var server: Task<Void, Never>?

        init() {
            metrics.httpVersion = .http1_1
        }

        /// Ends a body that is not at its end. A failure without bytes keeps those before an earlier one.
        mutating func fail(_ error: any Error, after unread: Data? = nil) {
            if !isAtEnd { failure = failure ?? error }
            self.unread = unread ?? self.unread
        }

        mutating func takeUnread() -> Data? {
            defer { unread = Data() }
            return unread.isEmpty ? nil : unread
        }
    }
}

/// The limits of `Timeouts` for one exchange of a ``MockTransport``, which hold while the transport waits.
final class MockTimeLimits: Sendable {
    private let request: Request
    /// The time since the beginning of the exchange.
    private let elapsed: @Sendable () -> Duration
    /// Returns at a time since the beginning; `isSeen` is that of ``wait(in:isSeen:_:)``.
    private let sleep: @Sendable (_ deadline: Duration, _ isSeen: Bool) async throws -> Void
    /// The time waited since the last activity of the server.
    private let idleTime = Lock(Duration.zero)

    /// Begins an exchange, timed on the clock of its session, if that has one of its own.
    init(_ request: Request, clock: any Clock<Duration>) {
        self.request = request
        let clock = request.sessionClock ?? clock
        (elapsed, sleep) = Self.timer(clock)
    }

    /// Begins a new period without activity.
    func noteActivity() {
        idleTime.withLock { $0 = .zero }
    }

    /// Runs a wait for the server, and cancels it when a limit is reached.
    ///
    /// - Parameter isActive: Whether the limit on the time without activity does not apply.
    /// - Parameter isSeen: Whether the limit is one of the sleepers of a ``ManualClock``, because nothing else ends the
    ///   wait.
    func wait<Value: Sendable>(
        in phase: TransportError.TimeoutPhase, isSeen: Bool = false, isActive: Bool = false,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let begin = elapsed()
        guard let limit = limit(at: begin, isActive) else { return try await work() }
        defer {
            let waited = elapsed() - begin
            if !isActive { idleTime.withLock { $0 += waited } }
        }
        return try await withThrowingTaskGroup(of: Value?.self) { [sleep] group in
            group.addTask { try await work() }
            group.addTask {
                try await sleep(begin + limit.left.bounded, isSeen)
                return nil
            }
            defer { group.cancelAll() }
            // A clock may have reached the limit and the end of the wait in one step.
            guard let value = try await group.next() ?? nil, elapsed() - begin < limit.left else {
                throw TransportError.timedOut(phase, limit.whole, FailureContext(request.url))
            }
            return value
        }
    }

    /// Waits for a duration on the clock, among the sleepers of a ``ManualClock``.
    func pause(_ duration: Duration) async throws {
        try await sleep(elapsed() + duration, true)
    }

    /// Returns the limit that will be reached first, and the time until then; `nil` if there is none.
    private func limit(at time: Duration, _ isActive: Bool) -> (left: Duration, whole: Duration)? {
        guard let timeouts = request.options?.timeouts else { return nil }
        let total = timeouts.total.map { ($0 - time, $0) }
        let idle = isActive ? nil : timeouts.idle.map { ($0 - idleTime.withLock(\.self), $0) }
        return [total, idle].compactMap(\.self).min { $0.0 < $1.0 }
    }

    private static func timer(_ clock: some Clock<Duration>) -> (
        elapsed: @Sendable () -> Duration, sleep: @Sendable (Duration, Bool) async throws -> Void
    ) {
        let start = clock.now
        return (
            { start.duration(to: clock.now) },
            { deadline, isSeen in
                if !isSeen, let clock = clock as? ManualClock, let start = start as? ManualClock.Instant {
                    try await clock.sleepUnseen(until: start.advanced(by: deadline))
                } else {
                    try await clock.sleep(until: start.advanced(by: deadline), tolerance: nil)
                }
            }
        )
    }
}
