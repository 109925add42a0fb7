// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// Performs one call of a program.
struct CallRunner: Sendable {
    let call: Program.Call
    let program: Program
    let world: SimulatedWorld
    let ledger: Ledger
    let directory: String

    func perform(on session: SessionManager) async throws {
        let request = try request(on: session)
        switch call.kind {
        case .upload where call.body == .task:
            let task = session.makeUploadTask(for: request)
            defer {
                EventGrammar.judge(task.erased, of: call.number, program.settings, ledger)
            }
            try await withSuspension(of: task.erased) {
                let response = try await task.value
                try judge(response.value, response.head, request)
            }
        case .data, .upload:
            if call.kind == .data, [.standard, .elseLoad].contains(mode) {
                ledger.update { $0.sharingCalls[call.number] = call.session }
            }
            let isShared = program.settings.sharesResponses && call.kind == .data && call.method == .get
            let response =
                if isShared, call.retryLimit == nil, mode == .standard {
                    try await request.sharing { try await session.data(for: $0) }
                } else {
                    try await session.data(for: request)
                }
            if isShared, ledger.arrivals(of: call.number).isEmpty { ledger.cover("oracle.2.shared") }
            try judge(response.value, response.head, request)
        case .streamed:
            let (head, data) = try await session.withResponse(
                for: request, reporting: program.settings.sendsConcurrently ? nil : EventGrammar(call.number, ledger)
            ) { head, body in
                var data = Data()
                for try await chunk in body {
                    data.append(chunk)
                    // The program has seen enough.
                    if program.family == .failures, call.count == 1 { break }
                }
                return (head, data)
            }
            if program.family != .failures || call.count > 1 { try judge(data, head, request) }
        case .task:
            let task = session.makeDataTask(for: request)
            defer {
                EventGrammar.judge(
                    task.erased, of: call.number, program.settings, ledger)
            }
            try await withSuspension(of: task.erased) {
                let response = try await task.value
                try judge(response.value, response.head, request)
                let received = task.status.downloadProgress?.completedBytes
                if received != Int64(response.value.count), !program.settings.sendsConcurrently {
                    ledger.violate(
                        8, "task \(call.number) has received \(received ?? -1) of \(response.value.count) bytes")
                }
            }
        case .download:
            try await download(request, on: session)
        case .events:
            try await receiveEvents(request, on: session)
        case .group:
            try await GroupRunner(runner: self, session: session).perform(request)
        case .socket:
            try await SocketRunner(runner: self, session: session).perform(request)
        case .resumable:
            try await UploadRunner(runner: self, session: session).perform(request)
        }
    }

    private func request(on session: SessionManager) throws -> Request {
        let url = Resource.root(of: call.host).appending(path: "r/\(call.resource)")
        var request = Request(method: call.method, url: url)
        request.call = call.number
        request.home = call.host
        request.headers[.language] = call.language
        if call.cookie { request.headers[.cookie] = "c=\(call.number)" }
        if call.hasIdempotencyKey { request.headers[.idempotencyKey] = "\(call.number)" }
        if [.post, .put, .patch].contains(call.method) { try setBody(of: &request) }
        request.partition = Runner.partition(call.session, program.settings)
        if let limit = call.retryLimit { request.retryPolicy = Self.retryPolicy(limit, program.settings, ledger) }
        if let timeout = call.timeout { request.timeout = .milliseconds(timeout) }
        switch mode {
        case .standard: break
        case .reload: request.cachePolicy = .reload
        case .revalidate: request.cachePolicy = .revalidate
        case .elseLoad: request.cachePolicy = .returnCacheElseLoad
        case .dontLoad: request.cachePolicy = .returnCacheDontLoad
        case .noCache: request.headers[.cacheControl] = "no-cache"
        case .noStore: request.headers[.cacheControl] = "no-store"
        }
        return request
    }

    /// The policy of a program, which tells the ledger if it is asked about a cancellation.
    static func retryPolicy(_ limit: Int, _ settings: Program.Settings, _ ledger: Ledger) -> RetryPolicy {
        RetryPolicy(limit: limit).with {
            if settings.hasRetryBudget { return }
            $0.budget = nil
            $0.decision = { [weak ledger] context in
                if case .failure(is CancellationError) = context.result {
                    ledger?.violate(7, "the policy is asked about a cancellation")
                }
                return .followPolicy
            }
        }
    }

    /// Adds a body, which is judged when servers receive it.
    private func setBody(of request: inout Request) throws {
        let text = "body of \(call.number)"
        guard [.upload, .streamed].contains(call.kind), call.body != .text else {
            ledger.update { $0.bodies[call.number] = Data(text.utf8) }
            request.body = .string(text)
            return
        }
        let chunks = (0..<20).map { Data("\(text), part \($0);".utf8) }
        let whole = chunks.reduce(Data(), +)
        ledger.update { $0.bodies[call.number] = whole }
        switch call.body {
        case .text, .bytes: request.body = .bytes(whole)
        case .file:
            let path = "\(directory)/u\(call.number)"
            try whole.write(to: URL(filePath: path))
            request.body = .file(path)
        case .stream, .task:
            let isUsed = Lock(false)
            request.body = .writer(length: call.hasIdempotencyKey ? Int64(whole.count) : nil) {
                [ledger, call, world, program] writer in
                let pass = BodyPass(of: call.number, program, ledger)
                let wasUsed = isUsed.withLock { isUsed in
                    defer { isUsed = true }
                    return isUsed
                }
                // Interceptors of the program may send it again.
                if wasUsed {
                    ledger.violate(3, "the body of call \(call.number), which can be read once, is sent again")
                }
                for chunk in chunks {
                    try await world.pause(.zero ... .milliseconds(20))
                    pass.judgeChunk()
                    try await writer.write(chunk)
                }
            }
        case .replayableStream:
            request.body = .stream(Chunks(chunks: chunks, runner: self), isReplayable: true)
        }
    }

    /// The chunks of a body, which come after pauses.
    private struct Chunks: AsyncSequence, Sendable {
        let chunks: [Data]
        let runner: CallRunner

        func makeAsyncIterator() -> Iterator {
            let pass = BodyPass(of: runner.call.number, runner.program, runner.ledger)
            return Iterator(rest: chunks[...], pass: pass, world: runner.world)
        }

        struct Iterator: AsyncIteratorProtocol {
            var rest: ArraySlice<Data>
            let pass: BodyPass
            let world: SimulatedWorld

            mutating func next() async throws -> Data? {
                try await world.pause(.zero ... .milliseconds(20))
                pass.judgeChunk()
                return rest.popFirst()
            }
        }
    }

    /// A reading of a body from its beginning, of which there is one at a time, and none after the call.
    private final class BodyPass: Sendable {
        private let call: Int
        private let ledger: Ledger

        init(of call: Int, _ program: Program, _ ledger: Ledger) {
            (self.call, self.ledger) = (call, ledger)
            let count = ledger.update { state in
                state.bodyPasses[call, default: 0] += 1
                return state.bodyPasses[call] ?? 0
            }
            // Interceptors may send it again, also concurrently.
            guard count > 1, !program.settings.hasInterceptors else {
                return
            }
            ledger.violate(9, "the body of call \(call) is read again before it is over")
        }

        /// Of a task that is suspended, a chunk may be on its way, and a short body with a known length.
        func judgeChunk() {
            let count = ledger.update { state in
                state.suspendedChunks[call]? += 1
                return state.suspendedChunks[call] ?? 0
            }
            if count > 1 { ledger.violate(6, "the body of call \(call) is read although its task is suspended") }
            guard ledger.facts.calls[call]?.end != nil else { return }
            ledger.violate(6, "the body of call \(call) is read after its end")
        }

        deinit {
            ledger.update { $0.bodyPasses[call, default: 0] -= 1 }
        }
    }

    private var mode: CacheOracle.CacheMode { CacheOracle.CacheMode(rawValue: call.cacheMode) ?? .standard }

    func judge(_ data: Data, _ head: ResponseHead, _ request: Request) throws {
        Oracles.wholeness(data, head, of: call, program, ledger)
        if head.headers[.errorPage] != nil, call.method != .head {
            ledger.cover("oracle.2.errorPage")
            if data != ErrorPage.whole(head.status.code) {
                ledger.violate(2, "call \(call.number) has \(data.count) bytes of the page for \(head.status)")
            }
        }
        ledger.update { state in
            state.calls[call.number]?.status = head.status.code
            state.calls[call.number]?.earlierAttempts = head.retryHistory.earlierAttempts.count
        }
        guard program.settings.usesCache, call.method == .get, head.status == .ok,
            let id = head.headers[.responseID].flatMap({ Int($0) }), let served = ledger.facts.responses[id]
        else { return }
        let facts = ledger.facts
        guard !facts.dateWasMoved else { return }
        let exchanges = facts.arrivals.filter { $0.call == call.number }
        if !exchanges.contains(where: { $0.responseID == id }) { ledger.cover("oracle.5.stored") }
        let oracle = CacheOracle(
            response: served, request: request.headers, mode: mode,
            partition: Runner.partition(call.session, program.settings), exchanges: exchanges, all: facts.arrivals,
            begin: facts.calls[call.number]?.beginDate ?? 0, now: ledger.date)
        if let reason = oracle.violation { ledger.violate(5, "call \(call.number) uses response \(id): \(reason)") }
    }

    /// Resumes a task, and perhaps suspends it for a while.
    func withSuspension(
        of task: AnySessionTask, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        task.resume()
        guard let time = call.suspendAfter else { return try await body() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // The suspension ends in any case; a call that waits for a suspended task would wait forever.
                try? await world.clock.sleep(for: .milliseconds(time))
                let placed = [task].filter { $0.status.state == .running }
                task.suspend()
                ledger.cover("suspend")
                if !call.hasIdempotencyKey { ledger.update { $0.suspendedChunks[call.number] = 0 } }
                try? await world.clock.sleep(for: .milliseconds(100))
                ledger.update { $0.suspendedChunks[call.number] = nil }
                task.resume()
                noteResumed(placed)
            }
            try await body()
            group.cancelAll()
        }
    }

    /// Notes tasks that had places before they were suspended, and were resumed.
    func noteResumed(_ tasks: [AnySessionTask]) {
        let resumed = tasks.filter { [.running, .waiting].contains($0.status.state) }.map(\.id)
        ledger.update { $0.resumedTasks.formUnion(resumed) }
    }

    // MARK: Downloads

    private func download(_ request: Request, on session: SessionManager) async throws {
        let path = "\(directory)/d\(call.number)"
        var options = DownloadOptions()
        options.keepsPartialFile = !call.hasIdempotencyKey
        options.isDurable = call.isDurable
        options.flushInterval = 100
        options.segments = program.settings.segments == 0 ? .automatic : .count(program.settings.segments)
        options.segmentTuning.minimum = 50
        options.segmentTuning.interval = .milliseconds(20)
        let expected = try knownContent(of: request)
        if let expected {
            // Such downloads may take many minutes, in which each measurement is a step.
            options.segmentTuning.interval = .milliseconds(200)
            options.pieceDigests = try digests(of: expected)
            // Another URL of the same resource.
            options.mirrors = [request.url.appending(queryItems: [URLQueryItem(name: "mirror", value: "1")])]
        }
        var task = session.makeDownloadTask(for: request, to: .file(path), options: options)
        defer { EventGrammar.judge(figuresOf: task.erased, of: call.number, ledger) }
        var resumptions = 0
        while true {
            do {
                let running = task
                try await withSuspension(of: task.erased) { try check(try await running.value, path) }
                guard let expected else { return }
                ledger.cover("download.verified")
                if let data = FileManager.default.contents(atPath: path), data != expected {
                    ledger.violate(2, "the file of download \(call.number) has a wrong piece")
                }
                return
            } catch {
                if FileManager.default.fileExists(atPath: path) {
                    ledger.violate(2, "download \(call.number) failed, but its file exists")
                }
                let data = task.resumeData
                if data != nil { ledger.cover("download.resumable") }
                // A partial file that could not be opened again stays with the data of the program.
                let isOfProgram = if case .file? = error as? SessionError { resumptions > 0 } else { false }
                if data == nil || !options.keepsPartialFile, !options.isDurable, !isOfProgram {
                    let names = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
                    // A record stays, without its partial file, if the directory cannot be flushed.
                    let mayHaveRecord = program.family.isDurable && program.settings.fileFaultRate > 0
                    let left = names.filter { !mayHaveRecord || !$0.hasSuffix(".part.json") }
                    if left.contains(where: { $0.hasPrefix("d\(call.number).") }) {
                        ledger.violate(9, "download \(call.number) leaves \(names) without data to resume it")
                    }
                }
                if data != nil { judgeEnd(of: error) }
                guard let data, resumptions < 3, !Task.isCancelled else { throw error }
                resumptions += 1
                ledger.cover("download.resumed")
                ledger.forget(call: call.number)
                if call.changesDurability { options.isDurable.toggle() }
                task = session.makeDownloadTask(resuming: data, with: request, to: .file(path), options: options)
            }
        }
    }

    /// The content of the resource at this time, if the program knows the digests of its pieces.
    private func knownContent(of request: Request) throws -> Data? {
        guard program.settings.pieceLength > 0, var resource = Resource(request.url, seed: program.seed) else {
            return nil
        }
        for _ in 0..<20 { resource = resource.redirect?.to ?? resource }
        let language = resource.varies ? request.headers[.language].map { "-\($0)" } ?? "" : ""
        return resource.content(resource.version(at: ledger.date), language: language)
    }

    private func digests(of content: Data) throws -> PieceDigests {
        let length = program.settings.pieceLength
        let values = try stride(from: 0, to: content.count, by: length).map { start in
            try ContentDigest(of: Data(content.dropFirst(start).prefix(length))).value
        }
        return try PieceDigests(
            .sha256, pieceLength: Int64(length), totalBytes: Int64(content.count), values: values)
    }

    /// A download that could have been continued has used up its policy.
    private func judgeEnd(of error: any Error) {
        guard let error = error as? SessionError, error.isConnectionLoss, !program.settings.hasRetryBudget,
            call.timeout == nil, !program.settings.hasInterceptors,
            program.settings.segments == 1, program.family != .failures
        else { return }
        let limit = call.retryLimit ?? program.settings.retryLimit
        let earlier = error.retryHistory.earlierAttempts.count
        ledger.cover("oracle.7.download")
        if earlier < limit {
            ledger.violate(7, "download \(call.number) ends after \(earlier) of \(limit) retries, with \(error)")
        }
    }

    func check(_ file: DownloadedFile, _ path: String) throws {
        guard let data = FileManager.default.contents(atPath: path) else {
            if !ledger.facts.filesVanished { ledger.violate(2, "download \(call.number) succeeds without a file") }
            return
        }
        if !file.response.metrics.segmentHistory.isEmpty { ledger.cover("download.segmented") }
        if Int64(data.count) != file.size { ledger.violate(2, "download \(call.number) has another size") }
        guard let resource = Resource(file.response.head.url, seed: program.seed) else { return }
        ledger.cover("oracle.2.file")
        guard file.response.head.status == .ok || file.response.head.status == .partialContent else { return }
        let isAnswered = file.response.head.headers[.answered] != nil
        let original = ProgramInterceptor.original(data, file.response.head)
        if isAnswered ? original != ProgramInterceptor.answer : !resource.isWhole(original, at: ledger.date) {
            ledger.violate(2, "the file of download \(call.number) is no version of \(resource.url)")
        }
    }

    // MARK: Events

    private func receiveEvents(_ request: Request, on session: SessionManager) async throws {
        var request = request
        request.headers[.accept] = "text/event-stream"
        // A source whose connections all exceed the limit of the call would never end.
        if request.retryPolicy == nil, call.timeout != nil {
            request.retryPolicy = RetryPolicy(limit: 30).with { $0.budget = nil }
        }
        request.method = .get
        var last = 0
        do {
            for try await event in session.events(for: request, reconnectionTime: .milliseconds(100)) {
                guard event.data == "\(call.resource)-\(last + 1)", event.id == "\(last + 1)" else {
                    return ledger.violate(2, "event source \(call.number) has \(event.data) after event \(last)")
                }
                last += 1
            }
        } catch {
            // Another error, such as that of a refresh, is final.
            if (error as? SessionError)?.isConnectionLoss == true { judgeEndOfEvents(after: last) }
            throw error
        }
        try Task.checkCancellation()
        judgeEndOfEvents(after: last)
        ledger.cover("events.complete")
        // With a limit of its own, a source ends when responses without events exceed it.
        if last != 20, call.retryLimit == nil, call.timeout == nil {
            ledger.violate(2, "event source \(call.number) ends after event \(last) of 20")
        }
    }

    /// A source with a limit ends only after so many reconnections without progress.
    private func judgeEndOfEvents(after last: Int) {
        guard last < 20, let limit = call.retryLimit, !program.settings.hasInterceptors,
            ledger.facts.sessionClosed == nil, call.timeout == nil
        else { return }
        let arrivals = ledger.arrivals(of: call.number)
        guard let end = arrivals.last else { return }
        switch end.outcome {
        case .refused, .lost, .silent, .noRoute: break
        case .status(let status):
            guard [408, 425, 429, 500, 502, 503, 504].contains(status), end.retryAfter ?? 0 <= 60 else { return }
        }
        let reconnections = arrivals.reversed().prefix { !$0.hasBody || $0.outcome != .status(200) }.count
        let isFirst = reconnections == arrivals.count
        ledger.cover("oracle.7.events")
        if reconnections < limit + (isFirst ? 1 : 0) {
            ledger.violate(
                7, "event source \(call.number) ends after \(reconnections) failures with a limit of \(limit)")
        }
    }
}

extension SessionError {
    /// Whether a connection was lost or could not be made.
    fileprivate var isConnectionLoss: Bool {
        switch reason {
        case .connectionLost?, .cannotConnect?: true
        default: false
        }
    }
}
