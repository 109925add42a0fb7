// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A recorder that writes the exchanges of sessions into an HTTP archive (HAR 1.2), which browsers and other tools show.
///
/// ```swift
/// let recorder = try HARRecorder(path: "traffic.har")
/// let api = SessionManager { recorder.install(in: &$0) }
/// …
/// try await recorder.close()
/// ```
///
/// Each exchange is an entry: a redirect, a retry and an answer to a challenge are entries of their own, with the same
/// number `_call`. A response from the response cache whose body is read to its end has a further entry, whose `_source`
/// is `cache`, `validated` or `stale`; a redirect from the cache that is followed has none. An exchange without a response
/// has the status 0 and a text `_error`, and one whose body was not received completely has an `_error`, too; a body of
/// which only a part is recorded is marked by `_truncated`. Neither holds for a body that was received while a closure of
/// the program decided about the response, and is not passed on. The entry of a WebSocket connection, written when that
/// ends, has its messages, `_webSocketMessages`, as browsers write them.
///
/// An entry is written, by a task of its own, when its call goes on and its body was read, or when the call ends; of each
/// call, up to 16 entries wait for that. So memory does not grow: if the disk is slower than the network, exchanges wait.
/// After each write the file is complete, also if the process is killed; one
/// that was cut off within a write, as by a full disk, is read by ``ANHTTP/HAR/init(_:)`` without its last entry.
///
/// Secrets are hidden by a ``ANHTTP/Redaction`` before they are written. Header fields are those that the session sets,
/// without the ones that libcurl adds, such as `Host` and stored cookies.
public final class HARRecorder: Sendable {
    private let path: String
    private let redaction: Redaction
    private let maximumBodySize: Int
    private let file: HARFile
    private let state = Lock(State())

    private struct State: Sendable {
        /// The exchanges of each running call that have not been written, by its task.
        var open: [UInt64: ObservedExchanges<RecordedExchange>] = [:]
        /// The exchanges that are written next.
        var waiting: [RecordedExchange] = []
        /// The exchanges and calls that wait for room in `waiting`.
        var waiters = Waiters<CheckedContinuation<Void, Never>>()
        /// Writes them, until none waits.
        var writer: Task<Void, Never>?
        var isClosed = false
    }

    /// Creates the file, with mode 0600; an existing file is replaced by a new one.
    ///
    /// - Parameters:
    ///   - path: The path of the file, absolute or relative to the current directory of the process.
    ///   - redaction: The rules for hiding secrets; ``ANHTTP/Redaction/standard`` by default.
    ///   - maximumBodySize: The number of bytes of each body that are recorded, after decompression, and of all messages of
    ///     a WebSocket connection, each of which counts as 64 bytes more; 64 KiB by default, 0 for none. Request bodies are
    ///     recorded if they are in memory, not those of files and streams.
    /// - Throws: ``SessionError/file(_:)`` if the file cannot be created, also for a pipe or a device.
    public init(path: String, redacting redaction: Redaction = .standard, maximumBodySize: Int = 64 << 10) throws {
        self.path = path
        self.redaction = redaction
        self.maximumBodySize = max(0, maximumBodySize)
        do throws(SystemError) {
            file = try HARFile(path: path)
        } catch {
            throw SessionError.file(path, error)
        }
    }

    /// Adds the recorder to a configuration: a monitor, and an interceptor around calls and one around exchanges, each
    /// inside those that are already there. A recorder may be installed in several configurations.
    public func install(in configuration: inout SessionConfiguration) {
        configuration.eventMonitors.append(Monitor(recorder: self))
        configuration.interceptors.append(CallTap(recorder: self))
        configuration.attemptInterceptors.append(ExchangeTap(recorder: self))
    }

    /// Writes the entries of all calls that have ended, and stops recording. Calls after the first one only report its
    /// error.
    ///
    /// - Throws: ``SessionError/file(_:)`` if an entry could not be written, since when the file has not changed.
    public func close() async throws {
        let writer = state.withLock { state in
            (state.isClosed, state.open) = (true, [:])
            return state.writer
        }
        await writer?.value
        if let failure = await file.finish() { throw SessionError.file(path, failure) }
    }

    // MARK: Recording

    private func append(_ exchange: RecordedExchange) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.waiting.append(exchange)
            if state.writer == nil { state.writer = Task { await writeWaiting() } }
        }
    }

    private func writeWaiting() async {
        while true {
            let next = state.change { state in
                defer { state.waiting = [] }
                if state.waiting.isEmpty { state.writer = nil }
                return (state.waiting, resuming: state.waiters.takeAll())
            }
            guard !next.isEmpty else { return }
            await file.write(next, redaction)
        }
    }

    /// Waits for the disk if many exchanges wait to be written, at most until the time of the call is over.
    private func waitForRoom(for request: Request, on pipeline: Pipeline) async throws {
        guard state.withLock({ $0.waiting.count >= Self.maximumWaiting }) else { return }
        _ = try await pipeline.waiting(upTo: request.timeLeft) { [state] in
            await state.wait(among: \.waiters) { $0.waiting.count < Self.maximumWaiting ? () : nil }
        }
    }

    private static let maximumWaiting = 256

    /// Receives the events of exchanges.
    private struct Monitor: EventMonitor {
        let recorder: HARRecorder

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            switch event {
            case .exchange(let number, .started(let request)):
                recorder.begin(
                    number, RecordedExchange(request, call: task.id, maximumBodySize: recorder.maximumBodySize),
                    of: task.id)
            case .exchange(let number, let event):
                recorder.change(number, of: task.id) { $0.receive(event) }
            case .ended: recorder.end(task.id)
            default: break
            }
        }
    }

    private func begin(_ number: Int, _ exchange: RecordedExchange, of task: UInt64) {
        let over = state.withLock { state in
            guard !state.isClosed else { return [RecordedExchange]() }
            // An interceptor inside the recorder's repeats the request: the response that is recorded is that of the last
            // exchange, unless they overlap.
            if let body = exchange.body {
                state.open[task]?.changeEach { if $0.body === body, $0.stage != .running { $0.body = nil } }
            }
            return state.open[task, default: ObservedExchanges()].begin(number, exchange, stage: \.stage)
        }
        over.forEach(append)
    }

    private func change(_ number: Int, of task: UInt64, _ change: (inout RecordedExchange) -> Void) {
        state.withLock { $0.open[task]?.change(number, change) }
    }

    private func end(_ task: UInt64) {
        state.withLock { $0.open.removeValue(forKey: task) }?.all.forEach(append)
    }

    /// Records the bodies of exchanges.
    private struct ExchangeTap: FieldPreservingInterceptor {
        let recorder: HARRecorder

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            try await recorder.waitForRoom(for: request, on: next.pipeline)
            var request = request
            let copy = BodyCopy(limit: recorder.maximumBodySize)
            request[BodyCopy.OfRequest.self] = copy
            let log = request.webSocketOptions.map { _ in MessageLog(limit: recorder.maximumBodySize) }
            request[MessageLog.OfRequest.self] = log
            do {
                var response = try await next(request)
                guard let log else { return response.tapped(into: copy) }
                response.head.webSocket = response.head.webSocket.map { ObservedLink(base: $0, log: log) }
                return response
            } catch {
                copy.end(failing: error)
                throw error
            }
        }
    }

    /// Records the responses of the cache.
    private struct CallTap: Interceptor {
        let recorder: HARRecorder

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            try await recorder.waitForRoom(for: request, on: next.pipeline)
            let copy = BodyCopy(limit: recorder.maximumBodySize)
            var exchange = RecordedExchange(request, call: nil, maximumBodySize: recorder.maximumBodySize)
            exchange.body = copy
            let response = try await next(request)
            exchange.head = response.head
            return response.tapped(into: copy) { [recorder, exchange] ending in
                guard ending.metrics.source != .network else { return }
                var exchange = exchange
                exchange.source = ending.metrics.source
                recorder.append(exchange)
            }
        }
    }
}

/// An exchange as it is observed, before it becomes an entry.
struct RecordedExchange: Sendable {
    /// The request, with no more bytes of its body than are recorded.
    let request: Request
    /// The number of bytes of the whole body.
    private let bodyLength: Int
    private let maximumBodySize: Int
    let call: UInt64?
    let date = Date.now
    private let start = ContinuousClock.now
    private var sent: Duration?
    var head: ResponseHead?
    private var metrics: TransferMetrics?
    private var end: Duration?
    var source: ResponseSource?
    var body: BodyCopy?
    private let messages: MessageLog?
    var stage: ObservedExchanges<RecordedExchange>.Stage {
        guard metrics != nil else { return .running }
        return body?.recorded.hasEnded ?? true ? .over : .ended
    }

    init(_ request: Request, call: UInt64?, maximumBodySize: Int) {
        var kept = request
        if case .bytes(let data) = request.body.kind {
            bodyLength = data.count
            // A copy, which does not retain the rest.
            if data.count > maximumBodySize { kept.body = .bytes(Data([UInt8](data.prefix(maximumBodySize)))) }
        } else {
            bodyLength = 0
        }
        self.request = kept
        self.call = call
        self.maximumBodySize = maximumBodySize
        body = request[BodyCopy.OfRequest.self]
        messages = request[MessageLog.OfRequest.self]
    }

    mutating func receive(_ event: ExchangeEvent) {
        switch event {
        case .uploadProgress(let progress) where progress.completedBytes > 0: sent = ContinuousClock.now - start
        case .head(let head): self.head = head
        case .finished(let metrics): self.metrics = metrics
        default: break
        }
    }

    /// Returns the entry, with bodies up to a limit, and without secrets.
    func entry(_ redaction: Redaction) -> HAR.Entry {
        var timings = HAR.Timings()
        if let metrics { timings = HAR.Timings(metrics, sent: sent) }
        var entry = HAR.Entry(
            startedDateTime: date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            request: HAR.Request(request), response: head.map { HAR.Response($0) } ?? HAR.Response(), timings: timings)
        entry.call = call
        entry.source = source?.rawValue
        let copy = body?.recorded
        entry.error = copy?.isUnused == true ? nil : copy?.failure
        if head == nil { entry.error = copy == nil ? "no response" : entry.error ?? "cancelled" }
        if request.isSuperseded { entry.error = HAR.Entry.superseded }
        entry.request.httpVersion = entry.response.httpVersion
        entry.request.postData = postData(redaction)
        if let metrics {
            entry.serverIPAddress = metrics.remoteAddress?.host
            entry.connection = metrics.localAddress.map { "\($0.port)" }
            entry.request.headersSize = metrics.requestHeadBytes
            entry.request.bodySize = metrics.requestBodyBytes
            entry.response.headersSize = metrics.responseHeadBytes
            entry.response.bodySize = metrics.responseBodyBytes
            entry.response.content.size = metrics.responseBodyBytes
        }
        if let messages {
            let (recorded, omitted) = messages.content
            entry.resourceType = "websocket"
            entry.webSocketMessages = recorded
            if omitted > 0 { entry.comment = "\(omitted) messages are not recorded" }
        }
        if let head, messages == nil, let copy {
            let isDecoded = entry.response.content.add(
                copy, codings: head.codings(leftFor: request), upTo: maximumBodySize, redaction,
                metrics?.responseBodyBytes)
            if isDecoded { entry.response.headers.removeAll { $0.name.lowercased() == "content-encoding" } }
            // A reader may stop before the end.
            let isMissed = request.method != .head && head.status.code < 300 && (head.contentLength ?? 0) > 0
            if copy.count > 0 || isMissed, !copy.hasEnded { entry.response.content.isTruncated = true }
            if copy.isUnused { entry.response.content.isTruncated = nil }
        } else if messages == nil, copy == nil, entry.response.content.size > 0 {
            // The body of a request for a purpose of its own is not copied.
            entry.response.content.isTruncated = true
        }
        return redaction.entry(entry)
    }

    private func postData(_ redaction: Redaction) -> HAR.PostData? {
        let type = request.headers[.contentType] ?? ""
        switch request.body.kind {
        case .none: return nil
        case .bytes(let data):
            let shown = redaction.body(data, contentType: type, codings: request.headers.contentCodings) {
                Inflater.content(of: $0, coding: $1, upTo: maximumBodySize)
            }
            let comment = shown.comment(recording: data.count, of: Int64(bodyLength))
            let (text, encoding) = HAR.text(shown.bytes, isComplete: comment == nil)
            return HAR.PostData(mimeType: type, text: text, encoding: encoding, comment: comment)
        case .file: return HAR.PostData(mimeType: type, text: "", comment: "a file, which is not recorded")
        default: return HAR.PostData(mimeType: type, text: "", comment: "a stream, which is not recorded")
        }
    }
}

extension HAR.Content {
    /// Adds what was read of the body, and returns whether its content was decoded completely.
    ///
    /// - Parameters:
    ///   - codings: The content codings that the body still has.
    ///   - limit: The number of bytes of its content that are recorded.
    fileprivate mutating func add(
        _ body: BodyCopy.Recorded, codings: [String], upTo limit: Int, _ redaction: Redaction,
        _ received: Int64?
    ) -> Bool {
        size = body.count
        if let received, received > 0, received < body.count { compression = body.count - received }
        guard !body.data.isEmpty else {
            if body.count > 0 { isTruncated = true }
            return false
        }
        let shown = redaction.body(body.data, contentType: mimeType, codings: codings) {
            Inflater.content(of: $0, coding: $1, upTo: limit)
        }
        comment = shown.comment(recording: body.data.count, of: body.count)
        if comment != nil { isTruncated = true }
        (text, encoding) = HAR.text(shown.bytes, isComplete: comment == nil)
        return if case .decoded(_, isComplete: true) = shown { true } else { false }
    }
}

/// A copy of the beginning of a body, made while it is read.
final class BodyCopy: Sendable {
    private let limit: Int
    private let state = Lock(Recorded())

    struct Recorded: Sendable {
        /// The beginning of the body.
        fileprivate(set) var data = Data()
        /// The number of bytes that were read.
        fileprivate(set) var count: Int64 = 0
        /// Whether the body was read to its end or failure.
        fileprivate(set) var hasEnded = false
        /// The text of the error because of which there is no response, or not all of its body.
        fileprivate(set) var failure: String?
        /// Whether the body is not passed on.
        fileprivate(set) var isUnused = false
    }

    init(limit: Int) {
        self.limit = limit
    }

    /// What was recorded so far.
    var recorded: Recorded { state.withLock(\.self) }

    /// Records the end, and returns whether it is the first one.
    @discardableResult
    func end(failing error: (any Error)? = nil) -> Bool {
        let text = error?.outline
        return state.withLock { state in
            defer { (state.hasEnded, state.failure) = (true, state.failure ?? text) }
            return !state.hasEnded
        }
    }

    /// Records that the body is not passed on.
    func noteDisuse() { state.set(\.isUnused, to: true) }

    func add(_ chunk: Data) {
        state.withLock { state in
            state.data += chunk.prefix(limit - state.data.count)
            state.count += Int64(chunk.count)
        }
    }

    /// The attribute of a request whose response is copied.
    enum OfRequest: RoleAttribute {
        static var defaultValue: BodyCopy? { nil }
    }
}

extension OpenResponse {
    /// Returns the response with a body that is copied while it is read.
    fileprivate func tapped(
        into copy: BodyCopy, end: (@Sendable (ResponseEnding) -> Void)? = nil
    ) -> OpenResponse {
        var observed = body.observed {
            copy.add($0)
        } end: { [body] error in
            if copy.end(failing: error), error == nil, let ending = body.ending { end?(ending) }
        }
        observed.noteDisuse = { [inner = body.noteDisuse] in
            inner?()
            copy.noteDisuse()
        }
        return OpenResponse(head: head, body: observed)
    }
}

/// The messages of a WebSocket connection, for an archive.
final class MessageLog: Sendable {
    private let limit: Int
    private let state = Lock(State())

    private struct State: Sendable {
        var messages: [HAR.Message] = []
        var size = 0
        var omitted = 0
    }

    /// Creates a log without messages.
    ///
    /// - Parameter limit: The size in bytes up to which messages are recorded, all together, of which each takes some more.
    init(limit: Int) {
        self.limit = limit
    }

    /// The messages, and the number of those that had no room.
    var content: (messages: [HAR.Message], omitted: Int) { state.withLock { ($0.messages, $0.omitted) } }

    func add(_ message: WebSocketMessage, isSent: Bool) {
        let recorded = HAR.Message(message, isSent: isSent, at: Date.now)
        state.withLock { state in
            state.size += recorded.data.utf8.count + Self.overhead
            if state.omitted == 0, state.size <= limit {
                state.messages.append(recorded)
            } else {
                state.omitted += 1
            }
        }
    }

    /// The number of bytes that a message counts as besides its data: about those of its other members in an archive.
    private static let overhead = 64

    /// The attribute of a request whose connection is observed.
    enum OfRequest: RoleAttribute {
        static var defaultValue: MessageLog? { nil }
    }
}

/// A connection whose messages are observed.
struct ObservedLink: WebSocketLink {
    let base: any WebSocketLink
    let log: MessageLog

    var subprotocol: String? { base.subprotocol }
    var deflate: WebSocketDeflate? { base.deflate }
    var closure: WebSocketClosure? { base.closure }

    func receive() async throws -> [WebSocketFrame]? { try await base.receive() }
    func send(_ makeFrame: () throws -> WebSocketFrame) async throws { try await base.send(makeFrame) }
    func close(_ closure: WebSocketClosure) async throws { try await base.close(closure) }
    func fail(_ violation: WebSocketViolation) { base.fail(violation) }

    func note(_ message: WebSocketMessage, isSent: Bool) {
        base.note(message, isSent: isSent)
        log.add(message, isSent: isSent)
    }
}

/// A file to which entries are appended.
private actor HARFile {
    /// The file by its descriptor: another one may get its name.
    private var file: PartialFile
    /// The position of the end of the archive, over which the next entry is written.
    private var position: Int64
    private var isEmpty = true
    /// The error because of which nothing more is written.
    private var failure: SystemError?

    init(path: String) throws(SystemError) {
        let location = FileLocation(path)
        try location.checkReplaceable()
        // A file that exists may be open to other users, or belong to one.
        var file = try PartialFile(
            path: AtomicFile.temporaryPath(for: location.path), opening: .new, mode: 0o600)
        try file.write((HAR.beginning + HAR.end).bytes)
        try file.move(to: location.path)
        // Otherwise it was copied, because another file had its temporary name.
        guard file.isFile(at: location.path) else { throw SystemError.exists }
        self.file = file
        position = Int64(HAR.beginning.count)
    }

    func write(_ exchanges: [RecordedExchange], _ redaction: Redaction) {
        guard failure == nil else { return }
        var lines = Data()
        for exchange in exchanges {
            guard let line = try? HAR.line(exchange.entry(redaction)) else {
                continue
            }
            lines += (isEmpty ? Data() : Data(",\n".utf8)) + line
            isEmpty = false
        }
        do throws(SystemError) {
            // In one call, so that the file is complete before and after it.
            try file.rewind(to: position)
            try file.write((lines + HAR.end).bytes)
            position += Int64(lines.count)
        } catch {
            failure = error
        }
    }

    /// Returns the error because of which entries are missing.
    func finish() -> SystemError? {
        if failure == nil {
            do { try file.checkStored() } catch { failure = error }
        }
        return failure
    }
}
