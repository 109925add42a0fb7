// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The parameters of a download.
struct DownloadJob: Sendable {
    var destination: DownloadDestination
    var options: DownloadOptions
    /// The header fields that are not stored.
    var sensitiveHeaders: Set<HTTPField.Name>

    /// The digest that the program expects of the whole file, also if an earlier download is not continued; `nil` for
    /// none.
    var expectedDigest: ContentDigest? { options.expectedDigest ?? options.resumeData?.expectedDigest }

    /// The path for error descriptions.
    var path: String {
        switch destination.target {
        case .path(let path): path
        case .choice(let directory, _): directory
        }
    }
}

extension DownloadJob {
    /// Verifies that mirrors may be used.
    ///
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for mirrors without an expected digest, or of a request
    ///   with a body, which would be sent to other origins.
    fileprivate func checkMirrors(of request: Request) throws(SessionError) {
        guard !options.mirrors.isEmpty else { return }
        if expectedDigest == nil, options.pieceDigests == nil {
            throw .transport(TransportError(.invalidRequest(.option("mirrors require expectedDigest or pieceDigests"))))
        }
        guard case .none = request.body.content else {
            throw .transport(TransportError(.invalidRequest(.option("mirrors require a request without a body"))))
        }
    }

    /// Returns the size of the destination if it has the expected digest and need not be downloaded; otherwise `nil`.
    ///
    /// - Throws: The errors of `waitUntilRunning`, which is awaited between two reads.
    fileprivate func verifiedSize(waitUntilRunning: () async throws -> Void) async throws -> Int64? {
        guard options.skipsVerifiedFile, let digest = expectedDigest, case .path(let path) = destination.target,
            let file = try? RegularFile(path: path.absolutePath)
        else { return nil }
        var checks = DigestChecks([], and: digest)
        var bytes = Data(count: 256 << 10)
        var turns = HashingTurns()
        while file.remaining > 0 {
            var span = bytes.mutableBytes
            guard let count = try? file.read(into: &span), count > 0 else { return nil }
            checks.update(bytes.bytes.extracting(first: count))
            await turns.pass(count)
            try await waitUntilRunning()
        }
        return checks.isVerified ? file.size : nil
    }

    /// Removes what an earlier download has left, because the file is complete.
    fileprivate func discardUnfinished() {
        for data in [options.resumeData, options.isDurable ? ResumeData.left(at: path) : nil] {
            if let data, data.partialFile != path.absolutePath { data.discard() }
        }
    }
}

extension SessionManager {
    /// Performs a task's request and writes the body to a file; waits whenever the task is suspended.
    nonisolated func download(_ task: RunningTask, _ job: DownloadJob) async throws -> DownloadedFile {
        let core = task.core
        try job.checkMirrors(of: task.request)
        if let size = try await job.verifiedSize(waitUntilRunning: { try await core.waitUntilRunning() }) {
            let head = ResponseHead(status: .notModified, url: task.request.url)
            core.receive(head)
            core.complete(size)
            core.resumeData = nil
            job.discardUnfinished()
            return DownloadedFile(path: job.path, size: size, response: Response((), head: head))
        }
        let file: DownloadFile
        do {
            file = try DownloadFile(job, for: task.request, on: pipeline, stopwatch: Stopwatch(configuration.clock))
            core.resumeData = nil
        } catch {
            if case .notResumable = error { core.resumeData = nil }
            throw error
        }
        do {
            try await file.verifyKnownPieces { try await core.waitUntilRunning() }
            let response = try await fill(file, by: task)
            try await core.waitUntilRunning()
            core.complete(file.size)
            return try await file.commit(response) { try await core.waitUntilRunning() }
        } catch {
            // An error thrown by the program cannot carry resume data, and means that the file is not wanted.
            let reason = error as? SessionError
            // A later request would be answered by the same bytes.
            // An interceptor may have sent the request, by whose URL they are stored, to another one.
            if case .digest = reason, let source = file.accepted?.url, let cache = configuration.cache {
                let urls = [source, task.request.url]
                await onGlobalExecutor { for url in urls { cache.remove(url) } }
            }
            let isWanted =
                registry.isOfCancellation(error)
                ? core.isResumeDataWanted : job.options.keepsPartialFile && reason != nil
            core.resumeData = file.end(after: error, isWanted: isWanted)
            guard let data = core.resumeData, let reason else { throw error }
            throw SessionError.interrupted(by: reason, data)
        }
    }

    /// Requests the missing bytes of a file, as often as necessary, and writes them: all requests are one call.
    private nonisolated func fill(_ file: DownloadFile, by task: RunningTask) async throws -> Response<Void> {
        let events = DownloadEvents(task.core)
        var request = task.request
        file.prepare(&request)
        return try await pipeline.call(
            task.erased, request, delivery: .streamed, reporting: events
        ) { request, call in
            // Each further request to a server is made from the first one, so that their changes do not add up.
            var first = request
            var next = request
            var segment = Call(of: task.erased, delivery: .streamed, monitor: call.monitor, start: call.start)
            while true {
                events.setSegmented(false)
                let end: PartEnd
                do {
                    let response = try await pipeline.respond(to: next, &call)
                    var part = request
                    pipeline.limitAttempts(of: &part, call)
                    part.adoptTimeout(of: call)
                    (segment.limitStart, segment.limit) = (call.limitStart, call.limit)
                    end = try await pipeline.read(response, of: call) { [part, next, segment] head, body in
                        try await write(head, body, to: file, by: task.core) { plan in
                            events.setSegmented(true)
                            return SegmentedTransfer(
                                plan, of: file, at: next.url, by: task.core, request: part, call: segment, on: pipeline,
                                connectionLimit: configuration.connectionLimits.maximumConnectionsPerHost)
                        }
                    }
                } catch {
                    guard let other = file.requestToNextMirror(after: error, of: request, on: pipeline) else {
                        throw error
                    }
                    (first, next) = (other, other)
                    continue
                }
                switch end {
                case .complete(var response):
                    try await file.hashRest { try await task.core.waitUntilRunning() }
                    if let rest = try file.leaveMirrors() {
                        next = first
                        rest.prepare(&next)
                        continue
                    }
                    if let history = call.retries?.history, !history.earlierAttempts.isEmpty {
                        response.metrics.retryHistory = history
                    }
                    response.callDuration = pipeline.uptime.elapsed - call.start
                    return response
                case .next(let rest):
                    next = first
                    rest.prepare(&next)
                case .failed(let error, let rest):
                    next = first
                    rest.prepare(&next)
                    next.adoptTimeout(of: call)
                    try await pipeline.waitForRetry(after: error, hasProgress: rest.hasProgress, of: next, &call)
                    // A time limit may have ended the exchange of a suspended task.
                    try await pipeline.waitUntilRunning(task.core, toSend: next)
                }
            }
        }
    }

    /// Writes the body of one response to a file.
    ///
    /// - Parameter makeSegments: Called if the rest is received in segments.
    /// - Throws: The failure of a response after which the download cannot go on.
    private nonisolated func write(
        _ head: ResponseHead, _ body: ResponseBody, to file: DownloadFile, by core: TaskCore,
        makeSegments: (SegmentPlan) -> SegmentedTransfer
    ) async throws -> PartEnd {
        let action = file.plan.action(for: head, isReplaced: body.isReplaced)
        switch action {
        case .write where !head.hasContentCoding, .writeKeepingParts where !head.hasContentCoding:
            try file.checkSize(head.contentLength)
        case .append(let range): try file.checkSize(range.total)
        default: break
        }
        switch action {
        case .append, .complete, .writeKeepingParts:
            if let rest = try file.startOverIfTruncated() { return .next(rest) }
        case .write, .startOver, .reject, .fail: break
        }
        switch action {
        case .reject:
            // The response of a mirror may be accepted.
            if !file.hasFurtherMirror { core.receive(head) }
            var beginning = Data()
            if let read = file.job.options.readRejected {
                try await read(body, core)
                try await core.waitUntilRunning()
            } else {
                beginning = try await body.excerpt(of: head, upTo: 1 << 20, on: pipeline.clock)
            }
            try ResponseValidation(statuses: file.plan.acceptableStatuses).validate(head, beginning)
            throw TransportError(.internalInconsistency("A rejected response passed validation."))
        case .fail(let failure):
            throw SessionError.notResumable(failure)
        case .startOver(let failure):
            return .next(try file.startOver(because: failure))
        case .write, .writeKeepingParts:
            core.receive(head)
            try file.beginWhole(head, body, keepsParts: action == .writeKeepingParts)
            if let plan = file.segmentPlan(for: head, body) {
                return try await makeSegments(plan).run(head, body, at: 0)
            }
            core.accept(body)
            if let path = file.linkablePath { await body.willBeWritten(to: path) }
        case .append(let range):
            core.receive(head)
            try file.beginPart(head, range)
            if let plan = file.segmentPlan(for: head, body) {
                core.receive(TaskEvent.continued(offset: plan.done.count, total: plan.total))
                return try await makeSegments(plan).run(head, body, at: file.size)
            }
            core.accept(body, offset: file.size, total: file.known?.totalBytes)
        case .complete:
            core.receive(head)
            try file.beginPart(head, nil)
            core.accept(offset: file.size, total: file.size, countsExchange: false)
            return .complete(Response((), head: head))
        }
        do {
            for try await chunk in body {
                guard try file.write(chunk) else {
                    return .next(try file.startOver(afterWrongRange: head.headers.first(.contentRange)))
                }
                try await core.waitUntilReadable(body)
            }
        } catch let error as TransportError {
            guard let rest = file.rest() else { throw error }
            return .failed(error, rest)
        }
        let rest = try await file.endBody(body.trailers ?? [:]) { try await core.waitUntilRunning() }
        guard let rest else {
            return .complete(Response((), head: head, ending: body.ending ?? ResponseEnding()))
        }
        return .next(rest)
    }
}

/// The end of a response of a download.
enum PartEnd {
    /// The file has all bytes of the representation.
    case complete(Response<Void>)
    /// Another request is necessary, although nothing failed.
    case next(FurtherRequest)
    /// The transfer failed, and the rest can be requested.
    case failed(TransportError, FurtherRequest)
}

/// A request with which a download goes on.
struct FurtherRequest: Sendable {
    /// Whether more bytes are there than ever before in this download.
    var hasProgress: Bool
    /// Changes a request to ask for the bytes that are missing.
    var prepare: @Sendable (inout Request) -> Void
}

/// The limit on the requests of a download besides those of the retry policy: to start over, and for the rest after a
/// response with a part of the requested range.
///
/// 20 are permitted, as for redirects, and one more for each 64 KiB received: a server may send a large file in parts of
/// a megabyte, but not in parts of a byte.
package struct FollowUpLimit: Sendable {
    private var count: Int64 = 0

    package init() {}

    /// Counts a request, and returns whether it is permitted after a number of received bytes.
    package mutating func permitsNext(after received: Int64) -> Bool {
        count += 1
        return count <= 20 + max(0, received) / (64 << 10)
    }
}
