// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

extension SessionManager {
    /// Performs a task's request as a resumable upload; waits whenever the task is suspended.
    nonisolated func upload(_ task: RunningTask, _ options: UploadOptions) async throws -> Response<Data> {
        let source = try Result { try UploadSource(task.request.body) }.mapError(SessionError.lifting).get()
        let record =
            try options.isDurable
            ? source.file.map { try UploadRecord(of: $0, to: task.request, creation(of: task.request)) } : nil
        let upload = await UploadJob(task, source, options, on: pipeline, record)
        if record == nil { registry.expectCleanup(by: task.core.id) }
        do {
            let response = try await pipeline.call(
                task.erased, task.request, delivery: .collected(upTo: upload.maximumBodySize), reporting: task.core
            ) { request, call in
                var response = try await upload.run(request, &call)
                response.callDuration = pipeline.uptime.elapsed - call.start
                return response
            }
            await record?.close(isComplete: 200...299 ~= response.head.status.code)
            return response
        } catch {
            if let cancellation = upload.end(after: error, keepsUpload: record != nil) {
                // The task may be cancelled, and could not send the request, which is limited to a few seconds. It is
                // awaited here, and belongs to the task also if the session accepts no other requests.
                let removal = registry.begin(.data, cancellation, of: task.erased)
                await Task { [limit = upload.maximumBodySize] in
                    try? await TaskRegistry.cleaningUp {
                        try await self.perform(
                            removal, cancellation, delivery: .collected(upTo: limit),
                            leaving: cancellation[Home.self]
                        ) { _, _ in }
                    }
                }.value
            }
            try? await record?.note(upload.recorded)
            await record?.close()
            throw error
        }
    }

    /// Returns the fields with which a request creates an upload, except the sensitive ones and others that may differ when
    /// the upload is continued.
    private nonisolated func creation(of request: Request) -> [String] {
        var fields = request.headers
        fields.fill(from: pipeline.headers)
        let sensitive = (request.redirectPolicy ?? pipeline.redirectPolicy).sensitiveHeaders
        fields.removeAll { sensitive.contains($0.name) || UploadJob.passingFields.contains($0.name.canonicalName) }
        return Set(fields.map(\.name)).sorted { $0.canonicalName < $1.canonicalName }.map { name in
            "\(name.canonicalName): \(fields[values: name].joined(separator: ", "))"
        }
    }
}

/// A running resumable upload: sends the requests that a ``ResumableUpload`` decides on.
///
/// Used by a single task and not shared.
private final class UploadJob {
    let maximumBodySize: Int
    private let pipeline: Pipeline
    private let core: TaskCore
    /// The request of the program.
    private let target: Request
    private let source: UploadSource
    private let record: UploadRecord?
    private let policy: RetryPolicy
    /// The time limit of all exchanges and waits together; `nil` for none.
    private let deadline: Duration?
    private let stopwatch: Stopwatch
    private var machine: ResumableUpload
    /// The state that was recorded last, and the one that stays recorded while the task of a complete upload is suspended.
    private var (noted, kept): (ResumableUpload.Known?, ResumableUpload.Known?)
    /// The retries since the last progress, when the server had this many bytes.
    private var retries: (plan: RetryPlan, offset: Int64)

    init(
        _ task: RunningTask, _ source: UploadSource, _ options: UploadOptions, on pipeline: Pipeline,
        _ record: UploadRecord?
    ) async {
        maximumBodySize = task.request.options(inheriting: pipeline.options).value.maximumBodySize
        (self.pipeline, core, target, self.source, self.record) = (pipeline, task.core, task.request, source, record)
        stopwatch = Stopwatch(pipeline.clock)
        let request = task.request
        let own = request.retryPolicy ?? pipeline.retryPolicy
        var policy = own.limit > 0 ? own : RetryPolicy(limit: Self.defaultRetries).with { $0.budget = nil }
        deadline = policy.deadline
        if let timeout = request.timeout { policy.deadline = min(policy.deadline ?? timeout, timeout) }
        self.policy = policy
        retries = (RetryPlan(policy, isLongLived: true), 0)
        let keys = request.headers[values: .idempotencyKey]
        let salt = await record?.salt ?? .none
        machine = ResumableUpload(
            length: source.length, options: options, continuing: await record?.known,
            mayRepeatCreation: RetryPolicy().methods.contains(request.method),
            key: keys.isEmpty ? nil : salt.checksum(of: keys),
            metadata: request.headers.first(.uploadMetadata) ?? Self.metadata(of: request, source))
    }

    var recorded: ResumableUpload.Known? { kept ?? machine.recorded }

    /// Sends requests until the upload is complete or cannot go on.
    func run(_ request: Request, _ call: inout Call) async throws -> Response<Data> {
        var request = request
        if let deadline { request.limitAttempts(to: deadline, since: stopwatch) }
        var action = machine.resume(now: now)
        var (last, located): (Response<Data>?, Response<Data>?)
        while true {
            if action.isEnd {
                kept = noted
            } else {
                noted = machine.recorded
                try await record?.note(noted)
            }
            switch action {
            case .send(let message):
                call.seen = SeenRequests()
                do {
                    let response = try await send(message, after: request, &call)
                    learnInterim()
                    action = machine.receive(response.head, now: now)
                    if message.exchange == .locate, (200...299).contains(response.head.status.code) {
                        located = response
                    }
                    if machine.known != nil { report(machine.offset) }
                    last = response
                } catch {
                    learnInterim()
                    // The failure of a session that refreshes the token is one of this request.
                    let failure = SessionError.lowering(error)
                    // An interceptor with a retry policy of its own keeps its own record of attempts.
                    let mayHaveReachedServer =
                        !call.seen.isEmpty || (failure as? TransportError)?.mayHaveReachedServer == true
                    let mayGoOn = machine.interrupt(
                        mayHaveReachedServer: mayHaveReachedServer, sentAll: hasSentAll(by: message))
                    if case .requestBody(let cause) = (failure as? TransportError)?.reason {
                        // A file that was changed may have ended too early.
                        try source.check()
                        if case .source(let failure as SessionError) = cause { throw failure }
                    }
                    guard mayGoOn, try await pause(after: .failure(failure), &call) else { throw error }
                    action = machine.resume(now: now)
                }
            case .wait:
                guard let head = last?.head, try await pause(after: .success(head), &call) else {
                    return try await end(with: last)
                }
                action = machine.resume(now: now)
            case .finish: return try await end(with: last)
            case .finishAsLocated: return try await end(with: located)
            case .fail(let failure): throw SessionError.upload(failure)
            }
        }
    }

    /// Ends a failed upload. Returns the request that removes it from the server; `nil` if there is none, a later upload
    /// may continue it, or it may be complete.
    ///
    /// - Parameter keepsUpload: Whether a later upload can continue an interrupted one.
    func end(after error: any Error, keepsUpload: Bool) -> Request? {
        var evenIfComplete = false
        switch error {
        // The next answer of the server may be another one.
        case SessionError.upload(.server) where keepsUpload: return nil
        case SessionError.upload(.sourceChanged): evenIfComplete = true
        case SessionError.upload: break
        // The program's closures may throw the error of a cancellation, and its interceptors replace it.
        case _ where !keepsUpload && pipeline.registry.isCurrentCallCancelled: break
        default: return nil
        }
        let cancellation = machine.cancellation(evenIfComplete: evenIfComplete).map { message in
            var request = self.request(message, after: target)
            request.timeout = SessionManager.cleanupTimeout
            return request
        }
        machine.forget()
        return cancellation
    }

    // MARK: Exchanges

    /// Performs an exchange.
    private func send(
        _ message: UploadMessage, after previous: Request, _ call: inout Call
    ) async throws -> Response<Data> {
        var request = request(message, after: previous)
        request.adoptTimeout(of: call)
        try await pipeline.waitUntilRunning(core, toSend: request)
        try source.check()
        if let range = message.exchange.range, let digest = message.digest {
            let field = try await source.digestField(range, by: digest)
            request.headers[field.name] = field.value
        }
        // The URL of the upload is noted while the content is still being sent, in case the process ends meanwhile.
        let (core, machine, record, now) = (core, machine, machine.known == nil ? record : nil, now)
        // Read before the child task begins, which may be after the interim response.
        let number = core.eventCount
        async let _ = Self.noteInterim(of: core, machine, in: record, after: number, now: now)
        let response = try await pipeline.respond(to: request, &call)
        let result = try await pipeline.read(response, of: call) { [maximumBodySize] head, body in
            let data = try await body.collect(upTo: maximumBodySize)
            return Response(data, head: head, ending: body.ending ?? ResponseEnding())
        }
        // The server may have received bytes of two versions.
        if message.exchange.range != nil { try source.check() }
        return result
    }

    private static func noteInterim(
        of core: TaskCore, _ machine: ResumableUpload, in record: UploadRecord?, after number: Int, now: Int64
    ) async {
        guard let record else { return }
        let heads = core.stream(after: number) {
            if case .exchange(_, .informational(let head)) = $0 { head } else { nil }
        }
        var machine = machine
        for await head in heads {
            machine.receiveInterim(head, now: now)
            if machine.known != nil {
                try? await record.note(machine.known)
                return
            }
        }
    }

    /// Learns from the interim responses to the last request.
    private func learnInterim() {
        for head in core.interimResponses { machine.receiveInterim(head, now: now) }
    }

    /// Returns the request of a message.
    private func request(_ message: UploadMessage, after previous: Request) -> Request {
        var request = previous
        // Its resource may be named with another scheme.
        pipeline.requireTLS(of: &request)
        if let url = message.url { request = pipeline.request(request, at: url) }
        request.retryPolicy = RetryPolicy.none
        request[UploadPosition.self] = UploadPosition(
            offset: message.exchange.range?.lowerBound ?? machine.offset, total: source.length)
        if let method = message.method { request.method = method }
        if message.contentFields != .all { request.trailers = nil }
        request.headers.removeAll { !message.contentFields.include($0.name.canonicalName) }
        if !message.exchange.isCreation { request.headers.removeAll { Self.creationFields.contains($0.name) } }
        if message.exchange == .locate { request.cachePolicy = .reload }
        for field in message.fields { request.headers[field.name] = field.value }
        request.body = message.exchange.range.map { source.part($0) } ?? .none
        return request
    }

    // MARK: Interruptions

    /// Waits before the next attempt. Returns `false` if the policy does not permit one.
    private func pause(after result: RetryPlan.AttemptResult, _ call: inout Call) async throws -> Bool {
        // Progress begins the waits and their number anew, and so does an upload that was created again.
        if machine.highestOffset != retries.offset {
            retries = (RetryPlan(policy, isLongLived: true), machine.highestOffset)
        }
        var isRetriable = true
        if case .failure(let error) = result {
            guard !(error is CancellationError) else { return false }
            // A server that closes the connection after an interim response has not ended the upload.
            let isEarlyEnd = (error as? TransportError)?.reason == .invalidResponse(.noFinalResponse)
            isRetriable = retries.plan.isRetriable(result) || isEarlyEnd
        }
        // The program's decision may make requests.
        await call.exchanges.close()
        var decision = isRetriable ? RetryPolicy.Decision.retry() : .stop
        if let makeDecision = policy.decision, RetryPlan.mayBeDecided(result) {
            try pipeline.checkCancellation()
            let own = try await makeDecision(
                RetryPolicy.Context(
                    request: target, attempt: retries.plan.attempt, result: result, isRetriable: isRetriable))
            try pipeline.checkCancellation()
            if case .followPolicy = own {} else { decision = own }
        }
        let timing = RetryPlan.Timing(
            elapsed: stopwatch.elapsed, left: call.limit?.left, now: now, unit: pipeline.randomUnit())
        let next = Request(method: .head, url: machine.known?.url ?? target.url)
        let step = retries.plan.step(
            after: result, of: next, seen: SeenRequests(), decision: decision, at: timing)
        guard case .retry(let wait) = step else { return false }
        // What was interrupted may have made progress, which the server tells when it is asked.
        let budget = retries.plan.attempt > 1 || machine.known == nil ? retries.plan.budget : nil
        if let budget, !pipeline.withdrawRetry(of: next, from: budget) { return false }
        pipeline.report(.retrying(after: retries.plan.note(result, core.exchanges.last, wait: wait)), of: &call)
        try await pipeline.pause(wait, beforeRetryOf: next, from: budget)
        return true
    }

    /// Whether all bytes were passed on for sending.
    private var hasSentAll: Bool { core.status.uploadProgress?.completedBytes == source.length }

    /// Whether all bytes were passed on for sending, with those of a message as the last ones. A request that an interceptor
    /// has sent in its place reports its own bytes.
    private func hasSentAll(by message: UploadMessage) -> Bool {
        guard !hasSentAll else { return true }
        guard let range = message.exchange.range, range.upperBound == source.length,
            let progress = core.status.uploadProgress, progress.completedBytes == progress.totalBytes
        else { return false }
        return progress.completedBytes == Int64(range.count)
    }

    // MARK: Results

    /// Reports the number of bytes that the server has.
    private func report(_ offset: Int64) {
        core.receive(TaskEvent.uploadProgress(TransferProgress(completedBytes: offset, totalBytes: source.length)))
    }

    private func end(with response: Response<Data>?) async throws -> Response<Data> {
        try await core.waitUntilRunning()
        // Emptied only now: the process, or the task, may end while it is suspended.
        kept = nil
        try await record?.note(machine.recorded)
        guard let response else {
            throw TransportError(.internalInconsistency("An upload ended without a response."))
        }
        if (200...299).contains(response.head.status.code), !hasSentAll { report(source.length) }
        core.receive(response.head)
        core.accept()
        core.complete(Int64(response.value.count))
        return response
    }

    private var now: Int64 { Int64(pipeline.now().timeIntervalSince1970) }

    /// Returns the value of `Upload-Metadata`: the name of a file, and the media type of the content.
    private static func metadata(of request: Request, _ source: UploadSource) -> String? {
        var pairs: [String] = []
        if let path = source.file?.path {
            pairs.append("filename " + Data(FileLocation(unresolved: path).name.utf8).base64EncodedString())
        }
        if let type = request.headers.first(.contentType) {
            pairs.append("filetype " + Data(type.utf8).base64EncodedString())
        }
        return pairs.isEmpty ? nil : pairs.joined(separator: ",")
    }

    /// Fields that belong to the creation of an upload only: the conditions of the program are about its resource.
    private static let creationFields: Set<HTTPField.Name> = [
        .uploadMetadata, .idempotencyKey, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        .range,
    ]
    /// Fields that say nothing of what is created: the name of the program, and those of single calls.
    fileprivate static let passingFields: Set<String> = [
        "user-agent", "idempotency-key", "date", "traceparent", "tracestate", "x-request-id",
    ]
    private static let defaultRetries = 8
}

/// The position in the whole at which the content of an upload's request begins, and the length of the whole.
struct UploadPosition: RoleAttribute, Sendable {
    static var defaultValue: UploadPosition? { nil }

    let offset: Int64
    let total: Int64
}

/// The options of an upload: whether it is resumed after an interruption, and by which protocol. See
/// ``SessionManager/upload(_:body:method:headers:timeout:options:as:)``.
public struct UploadOptions: Sendable {
    /// Whether an upload that is interrupted goes on where the server's bytes end; `false` by default.
    ///
    /// The server must support the tus protocol 1.0 or resumable uploads for HTTP
    /// (draft-ietf-httpbis-resumable-upload). Of a body that is not replayable or whose length is unknown, nothing can
    /// be sent again; the upload then fails with ``SessionError/UploadFailure/bodyNotResumable``.
    public var isResumable = false
    /// Whether the upload can go on after the end of the process; `false` by default. It applies to a body that is a
    /// regular file, and implies ``isResumable``.
    ///
    /// A record of the upload is kept beside the file, under its name with a suffix that depends on the method, the URL and the
    /// name, and ends with `.upload`. It has mode 0600, and contains the URL of the upload on the server, which may be secret. The
    /// next durable upload of the same file by that method to that URL continues there, unless the file was changed, also its permissions
    /// or links, replaced or moved, or the upload was created with other header fields, of which a salted checksum is stored; those in
    /// ``RedirectPolicy/sensitiveHeaders``, `User-Agent` and those of single calls, such as `Idempotency-Key`, `Date`,
    /// `X-Request-ID` and `traceparent`, may differ. The record is removed when the upload is complete, or the server has
    /// rejected it; one with other header fields takes the record's place when the server has told its URL, or is complete.
    /// While it runs, another durable upload of the file by that method to that URL fails with
    /// ``SessionError/FileFailure/Reason/inUse``.
    public var isDurable = false
    /// The protocol; `nil`, the default, asks the server by an `OPTIONS` request first.
    public var uploadProtocol: UploadProtocol?
    /// The maximum number of bytes in one request; `nil`, the default, sends all bytes in one request unless the server
    /// has announced a limit. A value below 1 counts as 1. Unless ``uploadProtocol`` is set, the first request has all
    /// bytes if it is not known that the server follows the draft: another one would take a part for the whole.
    ///
    /// A body that a closure or a sequence generates is generated from its beginning for each part, and its first bytes are
    /// dropped: with n parts, it is generated n / 2 times. Write one that costs more than its transfer to a file first.
    public var partSize: Int64?
    /// Whether each request has the digest of its content, which the server verifies; `false` by default.
    ///
    /// The bytes are then read twice, in parts of at most 8 MiB unless ``partSize`` is set. With
    /// ``UploadProtocol/ietf`` the digest is a `Content-Digest` (RFC 9530), which a server may ignore; with
    /// ``UploadProtocol/tus`` an `Upload-Checksum`, if the server has the extension.
    public var verifiesParts = false

    /// Creates the default options: an upload in one request, which fails if it is interrupted.
    public init() {}

    /// The options of an upload that goes on after an interruption, as long as the process lives.
    public static let resumable = UploadOptions().with { $0.isResumable = true }

    /// The options of an upload that goes on after an interruption, also in a later process.
    public static let durable = UploadOptions().with { $0.isDurable = true }

    /// Returns a copy of the options modified by a closure.
    ///
    /// - Parameter change: Modifies the copy.
    public func with(_ change: (inout UploadOptions) -> Void) -> UploadOptions {
        var copy = self
        change(&copy)
        return copy
    }
}

/// A protocol for resumable uploads.
public enum UploadProtocol: String, Codable, Hashable, Sendable {
    /// The tus protocol 1.0 with the extensions creation, expiration, checksum and termination. The URL of the request
    /// is that of the creation; the upload's response is the last one of the protocol, mostly a 204 without content.
    case tus
    /// Resumable uploads for HTTP (draft-ietf-httpbis-resumable-upload, interop version 8). A server without support
    /// receives an ordinary request. The response is that of the resource to which the request was sent.
    case ietf
}
