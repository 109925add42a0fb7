// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The way in which a ``RecordingTransport`` uses its cassette; a test can read it from the environment by its raw value.
public enum RecordingMode: String, Hashable, Sendable {
    /// All requests are sent, and the cassette is written anew.
    case record
    /// Nothing is sent; a request that is not in the cassette fails.
    case replay
    /// Requests that are in the cassette are replayed; others are sent, and added.
    case update
}

/// A transport that sends requests by another one, and records the exchanges in an HTTP archive, a cassette, for a
/// ``ReplayTransport``.
///
/// ```swift
/// var configuration = SessionConfiguration(baseURL: URL(string: "https://api.example.com/"))
/// configuration.transport = try RecordingTransport(wrapping: configuration.makeTransport(), to: "users.har")
/// let api = SessionManager(configuration)
/// ```
///
/// The cassette is written when the transport is created, unless it is updated, and after each exchange that is sent, with complete
/// bodies, which are kept in memory; several transports of one cassette would replace each other's exchanges. The body of a request is read before it
/// is sent, also that of a file, and the bytes that were read are sent. What of a response is not read is not recorded, and
/// reading on fails when it is replayed. Secrets are hidden, with all of a body in a content coding that the session does not
/// decode, other than gzip and deflate; `HAR.places(of:)` finds those that are not. WebSocket connections are not supported.
public final class RecordingTransport: Transport {
    private let transport: any Transport
    private let path: String
    private let redaction: Redaction
    private let sends: Bool
    private let cassette: Cassette
    private let replay: ReplayTransport
    private let state: Lock<State>

    fileprivate struct State: Sendable {
        /// The exchanges as lines of the cassette: each one that is sent follows the one that began before it.
        var lines: [Line]
        /// The index of the line after the exchange that began last.
        var position = 0
        /// The first error of writing the cassette.
        var failure: (any Error)?
    }

    fileprivate struct Line {
        /// The number of a recorded or replayed exchange.
        let number: Int
        /// `nil` for an exchange that has not ended.
        var data: Data?
    }

    /// Creates a transport, and reads the cassette unless all requests are recorded.
    ///
    /// - Parameters:
    ///   - transport: The transport that sends requests, such as that of `SessionConfiguration.makeTransport()`.
    ///   - path: The path of the cassette. With ``RecordingMode/update``, it may be missing.
    ///   - mode: Whether requests are recorded, replayed, or both; ``RecordingMode/record`` by default.
    ///   - matching: The rule by which an exchange is found for a request; ``ReplayMatching/anyOrder`` by default.
    ///   - redaction: The rules for hiding secrets; ``ANHTTP/Redaction/byName`` by default.
    /// - Throws: An error of Foundation for a cassette that cannot be read, `DecodingError` for a file that is none, or
    ///   `SystemError` for a new one that cannot be written.
    public init(
        wrapping transport: any Transport, to path: String, mode: RecordingMode = .record,
        matching: ReplayMatching = .anyOrder, redacting redaction: Redaction = .byName
    ) throws {
        self.transport = transport
        self.path = path
        self.redaction = redaction
        sends = mode != .replay
        var entries: [HAR.Entry] = []
        if mode == .replay || (mode == .update && FileManager.default.fileExists(atPath: path)) {
            entries = try HAR(Data(contentsOf: URL(filePath: path))).entries
            // What cannot be replayed is recorded again.
            if mode == .update { entries.removeAll { $0.obstacle != nil || $0.isCutByLimit || !$0.isReplayed } }
        }
        cassette = Cassette(entries, matching, redaction)
        replay = ReplayTransport(cassette)
        state = Lock(State(lines: try entries.map(HAR.line).enumerated().map { Line(number: $0, data: $1) }))
        let isNew = mode == .record || mode == .update && !FileManager.default.fileExists(atPath: path)
        if isNew { try state.withLock { try $0.write(to: path) } }
    }

    /// The features of the transport that sends requests.
    public var features: TransportFeatures {
        var features = transport.features
        features.endExchanges = { [transport, replay] in
            await transport.features.endExchanges?()
            await replay.features.endExchanges?()
        }
        return features
    }

    /// The schemes of the transport that sends requests.
    public var authenticationSchemes: Set<AuthenticationScheme> { transport.authenticationSchemes }

    /// The first error of writing the cassette, with which later exchanges fail; `nil` if all exchanges that have ended were
    /// written. No exchange reports that of the last one: a test that records checks this property at its end.
    public var failure: (any Error)? { state.withLock(\.failure) }

    /// Sends a request and records the exchange, or replays it.
    ///
    /// - Throws: The errors of the transport that sends requests, ``ReplayFailure`` for a request that can be neither
    ///   replayed nor sent, or `SystemError` if the cassette could not be written before.
    public func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        guard sends else { return try await replay.open(request, delivery: delivery, reporting: events) }
        try replay.checkRunning(request)
        if let failure { throw failure }
        let reader = MockTransport(receiving: { _ in .status(.ok) }, clock: ContinuousClock())
        var (request, body) = try await read(request, by: reader)
        // What does not begin any more leaves its exchange for its repetition.
        try Task.checkCancellation()
        try replay.checkRunning(request)
        if let (number, entry) = try? cassette.take(reader.requests[0]) {
            state.withLock { $0.pass(number) }
            request.recordedEntry = entry
            return try await replay.open(request, delivery: delivery, reporting: events)
        }
        return try await record(request, body, delivery, events)
    }

    /// Ends all exchanges of the transport that sends requests.
    public func shutdown() async {
        await transport.shutdown()
        await replay.shutdown()
    }

    /// Returns a request whose body is in memory, and the body: a pipe can be read once, and a file may have other bytes
    /// when it is read again.
    private func read(_ request: Request, by reader: MockTransport) async throws -> (Request, Data) {
        try await replay.untilEnd(of: request) {
            try await reader.open(request, delivery: .streamed, reporting: nil).close()
        }
        let (body, trailers) = (reader.requests[0].body, reader.requests[0].trailers)
        var request = request
        // The closure was called for the bytes that were read, which are those that are sent.
        if request.trailers != nil { request.trailers = { trailers } }
        guard request.body.bytes == nil else { return (request, body) }
        request.body = .bytes(body).gated(as: request.body)
        // The reader has accepted them; of bytes in memory, the length is known.
        request.headers[.contentLength] = nil
        request.headers[.transferEncoding] = nil
        return (request, body)
    }

    private func record(
        _ request: Request, _ body: Data, _ delivery: BodyDelivery, _ events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        let number = state.withLock { $0.begin() }
        var entry = HAR.Entry(
            startedDateTime: Date.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            request: redaction.recorded(request, body: body), timings: HAR.Timings())
        do {
            let response = try await transport.open(request, delivery: delivery, reporting: events)
            entry.response = HAR.Response(response.head)
            entry.request.httpVersion = entry.response.httpVersion
            let source = RecordedBody(base: response.body) { [entry, self] body, extent, metrics, error in
                var entry = entry
                entry.error = request.isSuperseded ? HAR.Entry.superseded : error?.outline
                let shown = redaction.body(
                    body, contentType: entry.response.content.mimeType,
                    codings: response.head.codings(leftFor: request), decode: HAR.content)
                let missing = shown.comment(recording: body.count, of: Int64(body.count))
                var comment = missing
                // The program has stopped reading there.
                if extent == .part, case .decoded = shown { comment = nil }
                let isPart = comment != nil || extent == .part && response.head.mayHaveContent(for: request.method)
                // A redirect, for example, is followed without its body.
                let isPassedOver = extent == .unused || body.isEmpty && response.head.mayBeDiscarded
                if error == nil, isPart, !isPassedOver { entry.response.content.isTruncated = true }
                // A client that decodes bodies itself would otherwise decode this one again.
                if case .decoded = shown {
                    entry.response.headers.removeAll { $0.name.lowercased() == "content-encoding" }
                }
                if let metrics {
                    entry.timings = HAR.Timings(metrics)
                    entry.time = entry.timings.sum
                }
                entry.response.content.size = Int64(body.count)
                entry.response.bodySize = metrics?.responseBodyBytes ?? Int64(body.count)
                entry.response.content.comment = comment
                if case .hidden = shown {
                    // Of a body that is not passed on, nothing is missed.
                    entry.response.content.text = isPassedOver ? "" : nil
                } else {
                    (entry.response.content.text, entry.response.content.encoding) = HAR.text(
                        shown.bytes, isComplete: missing == nil)
                }
                write(entry, number)
            }
            var body = ResponseBody(source: source)
            body.noteDisuse = { source.noteDisuse() }
            return OpenResponse(head: response.head, body: body)
        } catch {
            entry.error = request.isSuperseded ? HAR.Entry.superseded : error.outline
            write(entry, number)
            throw error
        }
    }

    /// Adds an exchange, and writes the cassette.
    private func write(_ entry: HAR.Entry, _ number: Int) {
        let line = Result { try HAR.line(redaction.entry(entry)) }
        state.withLock { state in
            do {
                try state.end(number, line.get())
                try state.write(to: path)
            } catch {
                state.failure = state.failure ?? error
            }
        }
    }
}

extension RecordingTransport.State {
    /// Notes that an exchange of the cassette is replayed.
    mutating func pass(_ number: Int) {
        if let index = lines.firstIndex(where: { $0.number == number }) { position = index + 1 }
    }

    /// Adds an exchange that is sent, and returns its number.
    mutating func begin() -> Int {
        let number = lines.count
        lines.insert(RecordingTransport.Line(number: number), at: position)
        position += 1
        return number
    }

    mutating func end(_ number: Int, _ line: Data) {
        if let index = lines.firstIndex(where: { $0.number == number }) { lines[index].data = line }
    }

    func write(to path: String) throws {
        let data = HAR.data(lines.compactMap(\.data))
        var file = try AtomicFile(destination: path, mode: 0o600)
        try file.write(data.bytes)
        try file.commit()
    }
}

extension ResponseHead {
    /// Whether the response to a request may have content (RFC 9110 §6.4.1).
    fileprivate func mayHaveContent(for method: HTTPRequest.Method) -> Bool {
        method != .head && status != .noContent && status != .notModified && contentLength != 0
    }
}

/// A body that is copied while it is read, and recorded when its exchange is closed.
private final class RecordedBody: ResponseBodySource {
    private let base: ResponseBody
    private let record: @Sendable (Data, Extent, TransferMetrics?, (any Error)?) -> Void
    private let state = Lock(State())

    /// What the bytes are of the body: all, the beginning, or any number that is not passed on.
    enum Extent { case whole, part, unused }

    private struct State: Sendable {
        var data = Data()
        /// The error with which reading has failed, or the cancellation of the task that reads.
        var error: (any Error)?
        /// Whether the bytes are not passed on, so that the error does not matter.
        var isUnused = false
        var isRecorded = false

        var isUnread: Bool { !isRecorded && data.isEmpty && !isUnused && error == nil }
    }

    init(base: ResponseBody, _ record: @escaping @Sendable (Data, Extent, TransferMetrics?, (any Error)?) -> Void) {
        self.base = base
        self.record = record
    }

    func next() async throws -> Data? {
        try await noting { try await base.next() }
    }

    func collect(upTo limit: Int) async throws -> Data {
        try await noting { try await base.collect(upTo: limit) } ?? Data()
    }

    private func noting(_ read: () async throws -> Data?) async throws -> Data? {
        do {
            let data = try await read()
            if let data { state.withLock { $0.data += data } }
            return data
        } catch {
            state.set(\.error, to: error)
            throw error
        }
    }

    var ending: ResponseEnding? { base.ending }

    func noteDisuse() { state.set(\.isUnused, to: true) }

    func cancel() {
        // A body that was read to its end is complete.
        if base.ending == nil { state.withLock { $0.error = $0.error ?? CancellationError() } }
        base.cancel()
    }

    func close() async {
        // An interceptor may look at the head only; the replay needs the body all the same.
        if base.isWhole, state.withLock(\.isUnread), let data = try? await base.collect(upTo: 64 << 20) {
            state.set(\.data, to: data)
        }
        let (data, isUnused, error) = state.withLock { state in
            defer { state.isRecorded = true }
            return (state.isRecorded ? nil : state.data, state.isUnused, state.isUnused ? nil : state.error)
        }
        if let data { record(data, isUnused ? .unused : base.ending == nil ? .part : .whole, base.metrics, error) }
        await base.close()
    }
}
