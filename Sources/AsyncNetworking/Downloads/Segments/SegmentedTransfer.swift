// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes
import Synchronization

/// Receives a file by several requests at a time.
///
/// The first response, which belongs to the call of the download, is one of the segments. The others have exchanges of
/// their own, which have ended when ``run()`` returns. Child tasks open responses and wait for bytes; everything is
/// decided and written by the task of the download, which takes one chunk of a segment at a time.
final class SegmentedTransfer {
    private let pipeline: Pipeline
    private let file: DownloadFile
    private let core: TaskCore
    /// The request of the program, with the changes of the call.
    private let request: Request
    /// A call without exchanges, which those of segments begin as.
    private let call: Call
    private let tuning: SegmentTuning
    private let stopwatch: Stopwatch

    private var plan: SegmentPlan
    private var sources: SegmentSources
    private var count: SegmentNumber
    /// The running segments by number; that of the first response is 0.
    private var workers: [Int: Worker] = [:]
    private var lastNumber = 0
    /// The bytes that came from the server of the download.
    private var trusted = ByteRanges()
    private var progress = SegmentProgress()
    private var usualPace = UsualPace()
    private var history: [SegmentChange] = []
    private var lastError: (any Error)?
    /// The error by which the first response has ended.
    private var firstError: (any Error)?
    private var ending: ResponseEnding?
    private var hasChanged = false
    /// The errors of pieces that are wrong, and that the server of the download has sent.
    private var wrongPieces: [Int: SessionError] = [:]

    /// Creates the transfer of a file, of which a response to a request to a URL has been accepted.
    init(
        _ plan: SegmentPlan, of file: DownloadFile, at url: URL, by core: TaskCore, request: Request, call: Call,
        on pipeline: Pipeline, connectionLimit: Int
    ) {
        (self.plan, self.file, self.core) = (plan, file, core)
        (self.request, self.call, self.pipeline) = (request, call, pipeline)
        (tuning, stopwatch) = (file.job.options.segmentTuning, Stopwatch(pipeline.clock))
        let limit = min(connectionLimit > 0 ? connectionLimit : .max, .max / (file.mirrors.count + 1))
        sources = SegmentSources(
            [url] + file.mirrors, file.known?.representation ?? Representation(), limit: limit)
        file.pieces?.begin(plan.done)
        count = SegmentNumber(file.job.options.segments, limit: sources.limit)
    }

    /// A segment.
    private struct Worker {
        let source: Int
        /// Waits for the response; `nil` for the first one.
        var opening: Task<Event, Never>?
        var state = State.opening
        /// The exchange of a segment other than the first one.
        var call: Call?
        var body: ResponseBody?
        /// The expected digests of the response's content, and of what was received of it.
        var digests = DigestChecks([])
        var pace = SegmentPace()
        /// The bytes that it has received, which are without a gap; `nil` for none.
        var received: Range<Int64>?

        enum State {
            /// Waiting for the response.
            case opening
            /// Receiving bytes.
            case receiving
            /// All bytes of the segment have arrived; the end of the response is awaited, so that its connection can be
            /// used again.
            case ending
            /// Its bytes belong to others.
            case leaving
        }
    }

    /// A report of a child task.
    private enum Event: Sendable {
        case opened(Int, Result<Opened, any Error>)
        case bytes(Int, Result<Data?, any Error>)
        case tick
    }

    private struct Opened: Sendable {
        var response: OpenResponse
        var call: Call
    }

    /// Receives the file, beginning with the first response.
    ///
    /// - Throws: The error of the file, or the first error of a segment after which the download cannot be continued.
    func run(_ head: ResponseHead, _ body: ResponseBody, at offset: Int64) async throws -> PartEnd {
        try await verifyPieces(in: 0..<plan.total)
        try file.beginSegments(plan.done)
        if head.refusesRanges {
            // Its only response is not divided: what a mirror took of it could not be asked of it again.
            sources.exclude(0)
            count = SegmentNumber(.count(1), limit: sources.limit)
        }
        if plan.begin(0, at: offset) {
            workers[0] = Worker(source: 0, state: .receiving, body: body)
            if file.pieces == nil { workers[0]?.digests = DigestChecks(head.headers.contentDigests) }
            // More bytes than the response announces are not those of the file.
            if head.status == .partialContent, let last = head.contentRange?.bytes?.upperBound {
                plan.limit(0, to: min(last, plan.total - 1) + 1)
            }
        } else {
            sources.end(0)
            await body.close()
        }
        history = [SegmentChange(time: .zero, count: count.wanted, bytesPerSecond: nil)]
        report(isLast: true)
        let failure = await withTaskGroup(of: Event.self) { group -> (any Error)? in
            var failure: (any Error)?
            do {
                try await receive(&group)
            } catch {
                failure = error
            }
            await endAll(&group)
            return failure
        }
        if let failure { throw failure }
        report(isLast: true)
        if hasChanged {
            file.segmentUse = .permittedAfterChange
            return .next(try file.startOver(because: .changed))
        }
        guard plan.isComplete else { return try rest() }
        if file.pieces?.isComplete == true { file.pieceState = .verified }
        return try await complete(head)
    }

    private func receive(_ group: inout TaskGroup<Event>) async throws {
        if workers[0] != nil { receiveNext(0, &group) }
        awaitTick(&group)
        while !hasChanged, !plan.isComplete || workers.contains(where: { $0.value.state == .ending }) {
            beginSegments(&group)
            guard !workers.isEmpty, let event = await group.next() else { return }
            switch event {
            case .opened(let number, .success(let opened)): await open(number, opened, &group)
            case .opened(let number, .failure(let error)): end(number, because: error)
            case .bytes(let number, .success(let bytes?)): try await take(bytes, number, &group)
            case .bytes(let number, .success(nil)): try await endResponse(number)
            case .bytes(let number, .failure(let error)):
                await close(number)
                end(number, because: error)
            case .tick: tick(&group)
            }
            // After the event, which may have an exchange that only a worker closes.
            try Task.checkCancellation()
            try await waitUntilRunning()
        }
    }

    // MARK: Segments

    /// Begins segments as long as there are fewer than wanted, and something is left for them.
    private func beginSegments(_ group: inout TaskGroup<Event>) {
        while sources.running < count.wanted, let source = sources.next {
            let number = lastNumber + 1
            guard let range = plan.begin(number) else { return }
            lastNumber = number
            sources.begin(source)
            let request = request(for: range, from: source)
            // A task of its own, because it alone is cancelled if it takes too long.
            let opening = Task(executorPreference: currentTaskExecutor) { [pipeline, call] () -> Event in
                var call = call
                do {
                    let response = try await pipeline.respond(to: request, &call)
                    return .opened(number, .success(Opened(response: response, call: call)))
                } catch {
                    await call.exchanges.close()
                    return .opened(number, .failure(error))
                }
            }
            workers[number] = Worker(source: source, opening: opening)
            group.addTask {
                await withTaskCancellationHandler {
                    await opening.value
                } onCancel: {
                    opening.cancel()
                }
            }
        }
    }

    private func request(for range: Range<Int64>, from source: Int) -> Request {
        var request = pipeline.request(request, at: sources.url(source))
        request.headers[.range] = "bytes=\(range.lowerBound)-\(range.upperBound - 1)"
        request.headers[.ifRange] = sources.representation(source).validator?.fieldValue
        return request
    }

    /// Accepts the response of a segment, if it has the bytes that were requested.
    private func open(_ number: Int, _ opened: Opened, _ group: inout TaskGroup<Event>) async {
        guard var worker = workers[number], let segment = plan.running[number], worker.state == .opening else {
            var call = opened.call
            await call.exchanges.close()
            return end(number)
        }
        let (head, body) = (opened.response.head, opened.response.body)
        (worker.call, worker.body, worker.state) = (opened.call, body, .receiving)
        // The digest of the whole is that by which mirrors are verified.
        if worker.source == 0, file.pieces == nil { worker.digests = DigestChecks(head.headers.contentDigests) }
        workers[number] = worker
        let answer = SegmentAnswer(
            to: head, at: segment.next, of: plan.total, sources.representation(worker.source),
            isReplaced: body.isReplaced)
        if case .take(let responseEnd) = answer {
            sources.accept(head, from: worker.source, isShort: responseEnd < segment.end)
            plan.limit(number, to: responseEnd)
            if worker.source == 0, file.pieces == nil { file.late.formUnion(head.headers.representationDigests) }
            return receiveNext(number, &group)
        }
        await close(number)
        end(number)
        switch answer {
        case .take: break
        case .withoutRanges: sources.exclude(worker.source)
        // With `Retry-After`, the server accepts no request for some time.
        case .refused where head.headers.contains(.retryAfter): sources.exclude(worker.source)
        case .refused(let isOverload): sources.refuse(worker.source, isOverload: isOverload)
        case .changed:
            sources.exclude(worker.source)
            hasChanged = worker.source == 0 && file.pieces == nil && file.segmentUse == .permitted
        }
    }

    /// Awaits the next bytes of a segment.
    private func receiveNext(_ number: Int, _ group: inout TaskGroup<Event>) {
        guard let body = workers[number]?.body else { return }
        group.addTask {
            await withTaskCancellationHandler {
                do {
                    return .bytes(number, .success(try await body.next()))
                } catch {
                    return .bytes(number, .failure(error))
                }
            } onCancel: {
                body.cancel()
            }
        }
    }

    /// Writes received bytes.
    private func take(_ bytes: Data, _ number: Int, _ group: inout TaskGroup<Event>) async throws {
        guard var worker = workers[number], worker.state == .receiving else {
            if number == 0, workers[0]?.state == .ending { try file.checkSize(plan.total + Int64(bytes.count)) }
            await close(number)
            return end(number)
        }
        // A server that has no place for them; another one may merely be slower to begin.
        let waiting = workers.filter { $0.value.state == .opening && $0.value.source == worker.source }
        let receipt = plan.receive(bytes.count, number, waiting: Set(waiting.keys))
        // A response of unknown size may be longer than the file that the program expects.
        let size = receipt.offset + Int64(bytes.count)
        if number == 0, size > plan.total, plan.done.contains(receipt.offset..<plan.total) { try file.checkSize(size) }
        worker.digests.update(bytes.bytes)
        worker.pace.receive(receipt.count)
        if receipt.count > 0 {
            let start = worker.received?.lowerBound ?? receipt.offset
            worker.received = start..<receipt.offset + Int64(receipt.count)
        }
        if receipt.end == .whole { worker.state = .ending }
        workers[number] = worker
        sources.receive(receipt.count, from: worker.source)
        for waiting in receipt.overtaken { giveUp(waiting) }
        if receipt.count > 0 {
            let range = receipt.offset..<receipt.offset + Int64(receipt.count)
            try file.write(
                bytes.prefix(receipt.count), at: receipt.offset, done: plan.done, isFromMirror: worker.source != 0)
            if worker.source == 0 { trusted.insert(range) }
            file.pieces?.receive(range, from: worker.source)
            if let range = receipt.givenUp { try giveUp(range, from: worker.source) }
            try await verifyPieces(in: range)
        }
        report()
        guard receipt.end != .cut else {
            usualPace.end(worker.pace)
            await close(number)
            return end(number)
        }
        receiveNext(number, &group)
    }

    // MARK: Pieces

    /// Verifies the pieces with bytes of a range that are complete; the bytes of wrong ones are requested again.
    ///
    /// - Throws: ``SessionError/digest(expected:found:path:url:)`` after too many wrong pieces.
    private func verifyPieces(in range: Range<Int64>) async throws {
        for piece in file.pieces?.due(in: range, of: plan.done) ?? [] {
            guard let digests = file.pieces?.digests else { return }
            let range = digests.range(of: piece)
            let found = try await file.digest(of: range, by: digests.algorithm) { try await waitUntilRunning() }
            let verdict = file.pieces?.judge(piece, found) ?? .right
            guard verdict != .right else {
                wrongPieces[piece] = nil
                continue
            }
            plan.restart(range, isUndivided: verdict == .mixed)
            try file.restart(range, done: plan.done)
            let error = SessionError.digest(
                expected: ContentDigest(digests.algorithm, digests.values[piece]), found: found, path: file.job.path,
                url: sources.url(0))
            switch verdict {
            case .right, .mixed: break
            case .hopeless: throw fail(error)
            case .wrong(let source):
                if source == 0 { wrongPieces[piece] = error }
                sources.exclude(source)
                // Nor after the requests begin anew.
                file.mirrors.removeAll { $0 == sources.url(source) }
                for number in workers.keys.sorted() where workers[number]?.source == source { leave(number) }
            }
        }
    }

    /// Returns an error whose wrong bytes the file no longer counts.
    private func fail(_ wrongPiece: SessionError) -> SessionError {
        file.pieceState = .wrong
        return wrongPiece
    }

    /// Handles the end of a response, which may come before that of its segment.
    private func endResponse(_ number: Int) async throws {
        guard let worker = workers[number] else { return }
        if worker.state != .leaving { try worker.digests.verify(file.job.path, from: file.request.url) }
        if let ended = worker.body?.ending {
            ending = ended
            if worker.source == 0, file.pieces == nil { try await verify(ended.trailers, after: worker) }
        }
        await close(number)
        end(number)
        if worker.state == .receiving { fail(worker) }
    }

    /// Verifies digests that a response has after its content, and notes those of the whole.
    private func verify(_ trailers: HTTPFields, after worker: Worker) async throws {
        file.late.formUnion(trailers.representationDigests)
        // Of a response that goes on over others' bytes, not all are there.
        guard worker.state == .ending, let range = worker.received else { return }
        for expected in trailers.contentDigests {
            let found = try await file.digest(of: range, by: expected.algorithm) { try await waitUntilRunning() }
            guard found != expected else { continue }
            throw SessionError.digest(expected: expected, found: found, path: file.job.path, url: file.request.url)
        }
    }

    /// Notes that a segment has ended too early.
    private func fail(_ worker: Worker) {
        sources.fail(worker.source, hasBytes: worker.received != nil)
        // The limit on the requests of a download is for its own server.
        if worker.source == 0, !file.followUps.permitsNext(after: file.received) { sources.exclude(0) }
    }

    /// Removes a segment, whose exchange is over. Its remaining bytes are left.
    private func end(_ number: Int, because error: (any Error)? = nil) {
        guard let worker = workers.removeValue(forKey: number) else { return }
        stop(number, worker)
        if worker.state != .leaving { sources.end(worker.source) }
        if worker.state == .ending { usualPace.end(worker.pace) }
        guard let error, worker.state == .opening || worker.state == .receiving else { return }
        lastError = error
        if number == 0 { firstError = error }
        guard worker.state == .opening else { return fail(worker) }
        sources.refuse(worker.source, isOverload: error is TransportError)
    }

    private func stop(_ number: Int, _ worker: Worker) {
        // A failure to access the file shows when the bytes are written again.
        if let range = plan.stop(number) { try? giveUp(range, from: worker.source) }
    }

    /// Notes that bytes of a source do not count any more, also for the digest of the whole.
    private func giveUp(_ range: Range<Int64>, from source: Int) throws(SessionError) {
        file.pieces?.giveUp(range, from: source)
        try file.restart(range, done: plan.done)
    }

    /// Ends the exchange of a segment.
    private func close(_ number: Int) async {
        await workers[number]?.body?.close()
        await workers[number]?.call?.exchanges.close()
        workers[number]?.call = nil
    }

    /// Ends all exchanges.
    private func endAll(_ group: inout TaskGroup<Event>) async {
        group.cancelAll()
        for number in workers.keys.sorted() { await close(number) }
        for await event in group {
            guard case .opened(_, .success(var opened)) = event else { continue }
            await opened.call.exchanges.close()
        }
        workers = [:]
    }

    // MARK: Speed

    private func awaitTick(_ group: inout TaskGroup<Event>) {
        let (interval, clock) = (tuning.interval, pipeline.clock)
        group.addTask {
            try? await clock.sleep(for: interval)
            return .tick
        }
    }

    /// Measures the speed of the segments: changes their number, and leaves those that are much slower than the others,
    /// if a server can be asked for their bytes.
    private func tick(_ group: inout TaskGroup<Event>) {
        defer {
            report()
            awaitTick(&group)
        }
        guard let speed = progress.measure(plan.done.count, at: stopwatch.elapsed) else { return }
        for number in workers.keys { workers[number]?.pace.measure() }
        let receiving = workers.filter { $0.value.state == .receiving }
        let isReduced = count.settle(at: sources.limit)
        // One that leaves while it waits for its response holds no place.
        if isReduced || receiving.count == sources.running && count.measure(speed, running: receiving.count) {
            history.append(SegmentChange(time: stopwatch.elapsed, count: count.wanted, bytesPerSecond: speed))
        }
        // The slowest ones leave if there are more than wanted.
        let surplus = sources.isUsable ? max(0, sources.running - count.wanted) : 0
        for (number, _) in receiving.sorted(by: Self.isSlower).prefix(surplus) { leave(number) }
        let active = workers.filter { $0.value.state == .receiving || $0.value.state == .opening }
        usualPace.measure(active.values.map(\.pace))
        if let (number, worker) = active.min(by: Self.isSlower),
            usualPace.isMuchFaster(than: worker.pace, patience: tuning.patience)
        {
            guard worker.state == .receiving else { return giveUp(number) }
            // A server without ranges would begin anew.
            guard sources.isUsable else { return }
            sources.avoid(worker.source)
            leave(number)
        }
    }

    private static func isSlower(_ left: (key: Int, value: Worker), _ right: (key: Int, value: Worker)) -> Bool {
        (left.value.pace.average ?? 0, left.key) < (right.value.pace.average ?? 0, right.key)
    }

    /// Takes the rest of a segment from it. It ends when its child task reports.
    private func leave(_ number: Int) {
        guard let worker = workers[number], worker.state != .leaving else { return }
        stop(number, worker)
        sources.end(worker.source)
        workers[number]?.state = .leaving
        worker.body?.cancel()
        worker.opening?.cancel()
    }

    /// Leaves a segment that awaits its response: the server has no place for it, or it waits for other requests of the
    /// session.
    private func giveUp(_ number: Int) {
        guard let source = workers[number]?.source else { return }
        leave(number)
        sources.refuse(source, isOverload: true)
    }

    private func report(isLast: Bool = false) {
        let (done, time) = (plan.done.count, stopwatch.elapsed)
        guard let rate = progress.report(done, at: time, isLast: isLast) else { return }
        var progress = TransferProgress(completedBytes: done, totalBytes: plan.total)
        progress.bytesPerSecond = rate.bytesPerSecond
        core.receive(TaskEvent.downloadProgress(progress))
    }

    private func waitUntilRunning() async throws {
        let time = stopwatch.elapsed
        try await pipeline.waitUntilRunning(core, toSend: request)
        if stopwatch.elapsed - time > .milliseconds(50) { progress.interrupt() }
    }

    // MARK: The end

    private func complete(_ head: ResponseHead) async throws -> PartEnd {
        try await file.hashRest { try await core.waitUntilRunning() }
        if let rest = try file.leaveMirrors(keeping: trusted) { return .next(rest) }
        var response = Response((), head: head, ending: ending ?? ResponseEnding())
        response.metrics.segmentHistory = history
        response.metrics.responseBodyBytes = file.received
        return .complete(response)
    }

    /// Returns how the download goes on if no server sends a further segment: by a single request, unless the first
    /// response has failed, too.
    private func rest() throws -> PartEnd {
        if let wrongPiece = wrongPieces.values.first { throw fail(wrongPiece) }
        let isAlone = lastNumber == 0 || firstError != nil
        if !isAlone { file.segmentUse = .refused }
        guard let rest = file.rest() else {
            throw firstError ?? lastError ?? SessionError.notResumable(.rangesNotSupported)
        }
        if let error = firstError as? TransportError { return .failed(error, rest) }
        if let firstError { throw firstError }
        guard file.followUps.permitsNext(after: file.received) else { throw SessionError.notResumable(.tooManyParts) }
        return .next(rest)
    }
}

/// The number of segments of a download: a given one, or one that depends on the speed.
private enum SegmentNumber {
    case fixed(Int)
    case automatic(SegmentCountController)

    init(_ segments: DownloadSegments, limit: Int) {
        self =
            switch segments {
            case .count(let count): .fixed(max(1, min(count, limit)))
            case .automatic: .automatic(SegmentCountController(limit: min(limit, 16)))
            }
    }

    var wanted: Int {
        switch self {
        case .fixed(let count): count
        case .automatic(let controller): controller.count
        }
    }

    /// Notes that the servers accept no more than a number of segments, and returns whether the number has changed.
    mutating func settle(at limit: Int) -> Bool {
        guard case .automatic(var controller) = self else { return false }
        defer { self = .automatic(controller) }
        return controller.settle(at: limit)
    }

    /// Adds a measurement of the speed, and returns whether the number has changed.
    mutating func measure(_ bytesPerSecond: Double, running: Int) -> Bool {
        guard case .automatic(var controller) = self else { return false }
        defer { self = .automatic(controller) }
        return controller.measure(bytesPerSecond, running: running)
    }
}

/// The progress of all segments together.
private struct SegmentProgress {
    private var rate = RateEstimate()
    private var reported = Duration.zero
    private var measured = (bytes: Int64(0), time: Duration.zero)
    private var isFirst = true
    /// Whether there was an interruption since the last measurement.
    private var isInterrupted = false

    /// Returns the rate if progress is to be reported, at most every 50 ms.
    mutating func report(_ bytes: Int64, at time: Duration, isLast: Bool) -> RateEstimate? {
        if isFirst { measured = (bytes, time) }
        guard isLast || time - reported >= .milliseconds(50) else { return nil }
        (reported, isFirst) = (time, false)
        rate.update(bytes: bytes, at: time)
        return rate
    }

    /// Returns the speed since the last measurement; `nil` if there was an interruption.
    mutating func measure(_ bytes: Int64, at time: Duration) -> Double? {
        defer { (measured, isInterrupted) = ((bytes, time), false) }
        guard !isInterrupted else { return nil }
        // There are fewer bytes after a wrong piece.
        return Double(max(0, bytes - measured.bytes)) / max((time - measured.time) / .seconds(1), 0.001)
    }

    mutating func interrupt() {
        rate.interrupt()
        isInterrupted = true
    }
}

/// Receives the events of a download's exchanges. Once there are segments, these report the progress of all together.
final class DownloadEvents: CallEventSink {
    private let core: TaskCore
    private let isSegmented = Atomic(false)

    init(_ core: TaskCore) {
        self.core = core
    }

    func setSegmented(_ isSegmented: Bool) {
        self.isSegmented.store(isSegmented, ordering: .releasing)
    }

    func receive(_ event: ExchangeEvent, of exchange: Int) {
        guard isSegmented.load(ordering: .acquiring) else { return core.receive(event, of: exchange) }
        switch event {
        case .downloadProgress, .uploadProgress: break
        case .started: core.receive(.exchange(exchange, event))
        // It may be the exchange before the segments.
        case .informational, .head, .finished: core.receive(event, of: exchange)
        }
    }
}
