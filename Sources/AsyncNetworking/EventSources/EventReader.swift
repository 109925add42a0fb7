// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

/// Reads the events of an ``EventSource``: connects, parses, waits and reconnects, all in the task that iterates.
final class EventReader {
    private let request: Request
    private let session: SessionManager
    private let statuses: Broadcast<EventSource.Status>
    private var parser: ServerSentEventParser
    private let maximumEventSize: Int
    private var plan: ReconnectionPlan
    /// The requests for the current response, or for the last one between two connections, that servers may have seen.
    private var seen = SeenRequests()
    /// The connection whose response is being read; `nil` between two connections.
    private var connection: Connection?
    private var isFinished = false

    init(
        _ request: Request, on session: SessionManager, reconnectionTime: Duration, maximumEventSize: Int,
        reporting statuses: Broadcast<EventSource.Status>
    ) {
        self.session = session
        self.statuses = statuses
        self.maximumEventSize = maximumEventSize
        parser = ServerSentEventParser(
            maximumEventSize: maximumEventSize, lastEventID: request.headers.first(.lastEventID) ?? "")
        parser.session.jsonDecoder = session.configuration.json.decoder
        plan = ReconnectionPlan(request, reconnectionTime: reconnectionTime)
        var request = request
        // The reader itself repeats the request, with the ID of the last event.
        request.retryPolicy = RetryPolicy.none
        if request.headers.first(.accept) == nil { request.headers[.accept] = "text/event-stream" }
        if request.headers.first(.cacheControl) == nil { request.headers[.cacheControl] = "no-store" }
        request.cachePolicy = .reload
        request.isLongLived = request.isLongLived ?? true
        request.changeOptions { options in
            // The size of an event bounds the memory; the sum of all events has no limit.
            guard options.decompressionLimit == DecompressionLimit() else { return }
            (options.decompressionLimit.maximumSize, options.decompressionLimit.maximumRatio) = (nil, nil)
        }
        self.request = request
    }

    deinit {
        close()
        connection?.abandon()
    }

    /// Returns the next event; `nil` at the end.
    func next() async throws -> ServerSentEvent? {
        guard !isFinished else { return nil }
        do {
            while true {
                try Task.checkCancellation()
                if let event = try parser.next() { return event }
                guard try await readMore() else { break }
            }
            _ = await disconnect()
            close()
            return nil
        } catch {
            let error = await disconnect(failing: error) ?? error
            close()
            throw SessionError.lifting(error)
        }
    }

    /// Reads a part of the response, or waits for the next connection; returns `false` at the end.
    private func readMore() async throws -> Bool {
        do {
            guard let chunks = connection?.body else {
                let head = try await connect()
                guard head.status != .noContent else { return false }
                plan.open()
                statuses.send(.open(head))
                return true
            }
            let chunk = try await withTaskCancellationHandler {
                try await chunks.next()
            } onCancel: {
                chunks.cancel()
            }
            if let chunk {
                parser.append(chunk)
                plan.receive()
                return true
            }
        } catch let error as TransportError where error.context.endsWithinCoding {
            // Servers that end a feed often do not end its content coding.
        } catch {
            let error = await disconnect(failing: error) ?? error
            try Task.checkCancellation()
            return try await reconnect(after: SessionError.lifting(error))
        }
        _ = await disconnect()
        return try await reconnect(after: nil)
    }

    /// Sends the request for the next connection, and returns the head of its response, which was accepted.
    private func connect() async throws -> ResponseHead {
        let id = parser.lastEventID
        var request = request
        // An ID that a field cannot contain, such as one with a control character, would be that of another event.
        let isSendable =
            1...Self.longestID ~= id.utf8.count && HTTPField(name: .lastEventID, value: id).value == id
        request.headers[.lastEventID] = isSendable ? id : nil
        parser = ServerSentEventParser(maximumEventSize: maximumEventSize, lastEventID: id)
        parser.session.jsonDecoder = session.configuration.json.decoder
        statuses.send(.connecting)
        seen = SeenRequests()
        let pipeline = session.pipeline
        plan.begin(at: pipeline.uptime.elapsed)
        let task = try session.registry.begin(.stream, request)
        var call = pipeline.begin(&request, of: task, delivery: .streamed, reporting: nil)
        defer { seen = call.seen }
        if !id.isEmpty, !isSendable { call.monitor?.receive(.omittingLastEventID(id)) }
        do {
            let response = try await pipeline.respond(to: request, &call)
            try await Self.validate(response.head, response.body, on: pipeline.clock)
            let connection = Connection(session, task, request, call, response.body)
            await connection.endWithSession()
            self.connection = connection
            return response.head
        } catch {
            let ended = await pipeline.end(&call, of: request, failing: error)
            session.registry.end(task.id)
            throw ended ?? error
        }
    }

    /// The length in bytes above which an ID is not sent. Servers refuse a request whose fields exceed a size, often 8 KiB,
    /// and each later one would be refused as well.
    private static let longestID = 4096

    /// Ends the connection, if there is one; returns the error that the caller receives.
    private func disconnect(failing error: (any Error)? = nil) async -> (any Error)? {
        await connection.take()?.end(failing: error)
    }

    /// A call whose response is read by several calls of ``next()``. It ends once: by the reader, or when the session
    /// cancels its requests, because nothing may read it then.
    private actor Connection {
        nonisolated let body: ResponseBody
        private let session: SessionManager
        private let task: AnySessionTask
        private let request: Request
        private let call: Call
        private var watch: Task<Void, Never>?
        private var ending: Task<(any Error)?, Never>?

        init(
            _ session: SessionManager, _ task: AnySessionTask, _ request: Request, _ call: Call, _ body: ResponseBody
        ) {
            (self.session, self.task, self.request, self.call, self.body) = (session, task, request, call, body)
        }

        /// Ends the connection when the session cancels its requests.
        func endWithSession() {
            // Ends with the connection.
            watch = Task {
                await session.registry.waitUntilCancelling()
                await end(failing: CancellationError())
            }
        }

        /// Ends the connection, and returns the error that the caller receives, as soon as it has ended.
        @discardableResult
        func end(failing error: (any Error)?) async -> (any Error)? {
            if let ending { return await ending.value }
            watch?.cancel()
            let ending = Task { [session, request, task, call] in
                var call = call
                defer { session.registry.end(task.id) }
                return await session.pipeline.end(&call, of: request, failing: error)
            }
            self.ending = ending
            return await ending.value
        }

        /// Ends the connection soon.
        nonisolated func abandon() {
            // Ends with the exchange, which a session that is shut down waits for.
            Task { await end(failing: CancellationError()) }
        }
    }

    /// Waits for the time of the next connection; returns `false` at the end.
    ///
    /// - Parameter error: The error with which the last one failed; `nil` if its response is complete.
    /// - Throws: That error if there is no further attempt, or the errors of waiting.
    private func reconnect(after error: (any Error)?) async throws -> Bool {
        if let time = parser.reconnectionTime { plan.reconnectionTime = min(time, ReconnectionPlan.longestWait) }
        let pipeline = session.pipeline
        switch plan.step(after: error.map { .init($0) } ?? .completed, seen: seen, at: pipeline.timing) {
        case .finish:
            if let error { throw error }
            return false
        case .reconnect(let wait):
            statuses.send(.waiting(until: pipeline.now() + wait / .seconds(1), after: error))
            try await pipeline.pause(wait)
            return true
        }
    }

    /// Throws unless a response is an event stream, or has status 204.
    private static func validate(
        _ head: ResponseHead, _ body: ResponseBody, on clock: any Clock<Duration>
    ) async throws {
        guard head.status != .noContent else { return }
        let validation = ResponseValidation(statuses: [200], mediaTypes: ["text/event-stream"])
        // The media type matters even for a stream that ends without an event.
        try await validation.validate(head, body, checksEmptyBody: true, on: clock)
    }

    private func close() {
        guard !isFinished else { return }
        isFinished = true
        statuses.send(.closed)
        statuses.finish()
    }
}

/// The state of the reconnections of an ``EventSource`` or a WebSocket connection. Decides about them without side
/// effects.
struct ReconnectionPlan {
    private let request: Request
    private let policy: RetryPolicy
    /// The shortest wait before a reconnection.
    var reconnectionTime: Duration
    /// The number of attempts that ended since something was received.
    private(set) var failures = 0
    /// The session's uptime since which there was no success: the beginning of the first attempt, or the end of the first
    /// one that was lost; `nil` while one is open.
    private var start: Duration?

    /// The longest wait for which a server can ask, unless a policy of the request's own permits a longer one.
    static let longestWait = Duration.seconds(86_400)

    /// The policy of a request without its own, which does not give up.
    private static let unlimited = RetryPolicy(limit: .max).with { $0.maximumRetryAfter = nil }

    init(_ request: Request, reconnectionTime: Duration) {
        self.request = request
        policy = request.retryPolicy ?? Self.unlimited
        self.reconnectionTime = reconnectionTime.bounded
    }

    /// The end of an attempt.
    enum Ending {
        /// The response was accepted and has ended.
        case completed
        /// The response is one that is not accepted, or the attempt failed with an error.
        case failed(RetryPlan.AttemptResult)

        /// Creates the ending of an attempt that failed with an error, which may be that of a rejected response.
        init(_ error: any Error) {
            let head = (error as? SessionError)?.rejection?.head
            self = .failed(head.map { .success($0) } ?? .failure(SessionError.lowering(error)))
        }
    }

    /// The step after an attempt.
    enum Step: Equatable {
        /// The source ends: without an error if the response is complete, otherwise with the attempt's error.
        case finish
        /// Another attempt is made after a wait.
        case reconnect(after: Duration)
    }

    /// Records that an attempt begins, at an uptime of the session.
    mutating func begin(at uptime: Duration) {
        start = start ?? uptime
    }

    /// Records that a response was accepted, whose connection may be lost later.
    mutating func open() {
        start = nil
    }

    /// Records that a part of a response arrived.
    mutating func receive() {
        (failures, start) = (0, nil)
    }

    /// Returns the step after an attempt, of whose requests servers may have seen some.
    ///
    /// - Parameter timing: The time of the decision, in which the time elapsed is the uptime of the session.
    mutating func step(after ending: Ending, seen: SeenRequests, at timing: RetryPlan.Timing) -> Step {
        failures += 1
        begin(at: timing.elapsed)
        var timing = timing
        timing.elapsed -= start ?? .zero
        switch ending {
        case .completed:
            // A complete response to another method, such as POST, is the whole answer.
            guard request.method == .get, failures <= policy.limit else { return .finish }
            return reconnect(after: policy.backoff.wait(beforeRetry: failures, unit: timing.unit))
        case .failed(let result):
            let plan = RetryPlan(policy, attempt: failures, isLongLived: true)
            switch plan.step(after: result, of: request, seen: seen, decision: .followPolicy, at: timing) {
            case .finish, .stop: return .finish
            case .retry(let proposed):
                let wait = request.retryPolicy == nil ? min(proposed, Self.longestWait) : proposed
                if let deadline = policy.deadline, timing.elapsed + wait + reconnectionTime >= deadline {
                    return .finish
                }
                return reconnect(after: wait)
            }
        }
    }

    private func reconnect(after wait: Duration) -> Step {
        .reconnect(after: (reconnectionTime + wait).bounded)
    }
}
