// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// Runs a program in a simulated world, and has the oracles judge it.
struct Runner: Sendable {
    let program: Program
    let world: SimulatedWorld
    let ledger: Ledger

    init(_ program: Program, in world: SimulatedWorld) {
        self.program = program
        self.world = world
        ledger = Ledger(world)
    }

    func run() async throws {
        let files = try FileWorld(world, ledger, program)
        defer { files.remove() }
        weak var survivor: SessionManager?
        do {
            let cache = makeCache(program.settings, files)
            var authenticator: Authenticator?
            let sessions = program.settings.partitions.map { partition in
                let (session, other) = makeSession(program.settings, cache, partition)
                authenticator = other
                return session
            }
            survivor = sessions[0]
            if program.settings.hedges { await prepareHedging(on: sessions[0]) }
            try await perform(on: sessions, authenticator, files.path)
            // Longer than any limit of what goes on in the background.
            try await world.clock.sleep(for: .seconds(1_000))
            let tasks = sessions.flatMap(\.tasks)
            if !tasks.isEmpty { ledger.violate(9, "\(tasks.count) tasks are still registered") }
        }
        try await restart(after: files)
        try await world.clock.sleep(for: .seconds(1))
        if survivor != nil { ledger.violate(9, "the session is still there") }
        for arrival in ledger.facts.arrivals where arrival.isOpen {
            ledger.violate(9, "an exchange of call \(arrival.call) is still open")
        }
        if let violation = ledger.facts.violations.first { throw violation }
    }

    /// Makes so many requests to each host that the times of requests are known.
    private func prepareHedging(on session: SessionManager) async {
        for host in Origins.hosts {
            for _ in 0..<20 {
                _ = try? await session.data(for: Request(url: Resource.root(of: host).appending(path: Origins.quick)))
            }
        }
    }

    // MARK: The session

    /// The name of the partition of a session, which is unique for one that has none.
    static func partition(_ session: Int, _ settings: Program.Settings) -> String {
        settings.partitions[session] ?? "\(unnamed) \(session)"
    }

    static let unnamed = "session"

    private func makeCache(_ settings: Program.Settings, _ files: FileWorld) -> ResponseCache? {
        guard settings.usesCache else { return nil }
        return program.family == .files || program.family.isDurable
            ? .disk("\(files.path)/cache", memory: 20_000) : .memory(200_000)
    }

    private func makeSession(
        _ settings: Program.Settings, _ cache: ResponseCache?, _ partition: String?
    ) -> (SessionManager, Authenticator?) {
        var program = program
        program.settings = settings
        let routes = Routes(outages: settings.outages, world: world, ledger: ledger)
        let origins = Origins(world: world, ledger: ledger, program: program, routes: routes)
        let transport = SimulatedTransport(
            world: world, reception: { origins.receive($0) },
            connectionsPerHost: settings.connectionsPerHost,
            observing: { [ledger, program] request, event in
                if case .begin = event { Oracles.judge(exchangeOf: request, ledger, program) }
                ledger.observe(request, event)
            }
        ) { try await origins.answer($0) }
        let authenticator = settings.usesTokens ? makeAuthenticator(settings) : nil
        let reference = SessionReference()
        func interceptors(_ kinds: [Interception], from first: Int) -> [ProgramInterceptor] {
            kinds.enumerated().map {
                ProgramInterceptor(kind: $0.element, place: first + $0.offset, ledger: ledger, session: reference)
            }
        }
        let session = SessionManager {
            $0.transport = settings.isLate ? LateTransport(transport, in: world, ledger) : transport
            $0.clock = world.clock
            $0.routes = routes
            $0.waitsForConnectivity = settings.waitsForConnectivity
            $0.timeouts.connectivity = settings.connectivityTimeout.map { .milliseconds($0) }
            $0.interceptors = interceptors(settings.interceptors, from: 0)
            $0.attemptInterceptors = interceptors(settings.attemptInterceptors, from: 5)
            if settings.sharesResponses { $0.interceptors += [RequestCoalescing(), FactsInterceptor()] }
            if settings.hedges {
                $0.attemptInterceptors += [Hedging(percentile: 0.3, maximumShare: 1), LaneInterceptor()]
            }
            if settings.breaksCircuits {
                $0.attemptInterceptors.append(CircuitBreaker(failures: 3, cooldown: .seconds(2)))
            }
            if let count = settings.requestsPerSecond {
                $0.attemptInterceptors.append(RequestRateLimit(count, per: .seconds(1)))
            }
            $0.sendsDefaultHeaders = false
            $0.retryPolicy = CallRunner.retryPolicy(settings.retryLimit, settings, ledger)
            $0.timeouts.idle = .seconds(settings.idleTimeout)
            $0.maximumConcurrentTasks = settings.maximumConcurrentTasks
            $0.cache = cache
            if settings.usesCache { $0.cachePartition = partition }
            $0.coalescesRequests = settings.coalescesRequests
            if let authenticator { $0.authentication.authenticators = [authenticator] }
            $0.authentication.credentials[Resource.root(of: "b.test")] = Credential(
                user: "user", password: "secret", schemes: [.basic])
        }
        reference.set(session)
        return (session, authenticator)
    }

    private func makeAuthenticator(_ settings: Program.Settings) -> Authenticator {
        Authenticator(
            for: [Resource.root(of: "a.test")], leeway: .zero, refreshLimit: 1_000
        ) { [self] current in
            let number = ledger.update { state in
                state.refreshesRunning += 1
                return state.tokens.count + state.refreshesRunning
            }
            defer { ledger.update { $0.refreshesRunning -= 1 } }
            Oracles.judge(refreshOf: current?.value, ledger, settings)
            let issued = ledger.now
            ledger.cover("refresh.begins")
            do {
                try await world.pause(.zero ... .milliseconds(200))
            } catch {
                try await endCancelledRefresh(begun: issued)
            }
            if world.chance(settings.faultRate / 4) {
                ledger.cover("refresh.fails")
                throw RefreshFailure()
            }
            let name = "t\(number)-\(issued)"
            let expires = ledger.date + Int64(settings.tokenLifetime) * 1_000
            ledger.update { $0.tokens[name] = (expires, issued) }
            return Authenticator.Token(name, expires: Date(timeIntervalSince1970: Double(expires) / 1_000))
        }
    }

    /// Ends a refresh at once, or after a while, in which other requests may begin to wait for it.
    private func endCancelledRefresh(begun: Int64) async throws {
        if begun / 1_000_000 % 2 == 0 {
            if program.endsAlone {
                ledger.update { [now = ledger.now] in $0.refreshCancelled = now }
            }
        } else {
            ledger.cover("refresh.lateEnd")
            // Awaited here, and not cancelled with the refresh.
            await Task { try? await world.clock.sleep(for: .milliseconds(20)) }.value
        }
        throw CancellationError()
    }

    private struct RefreshFailure: Error {}

    /// Begins a new session with the files that a crash has left, and completes its downloads.
    private func restart(after files: FileWorld) async throws {
        guard let call = try files.restoreCrash() else { return }
        let names = files.files().keys.filter { !$0.contains("/") }.sorted().joined(separator: ", ")
        world.mark("test", "●", "restart after a crash before \(call), with \(names.isEmpty ? "no files" : names)")
        judgeFiles(files)
        // The requests of the new session are not those of the old one.
        ledger.update { state in for index in state.arrivals.indices { state.arrivals[index].call = 0 } }
        var settings = program.settings
        (settings.faultRate, settings.uploadFaultRate, settings.maximumConcurrentTasks) = (0, 0, nil)
        let (session, _) = makeSession(settings, makeCache(settings, files), settings.partitions[0])
        for task in try session.restoredDownloads(in: files.path) {
            ledger.cover("download.restored")
            task.resume()
            do {
                let file = try await task.value
                let data = FileManager.default.contents(atPath: file.path) ?? Data()
                guard let resource = Resource(file.response.head.url, seed: program.seed) else { continue }
                if !resource.isWhole(data, at: ledger.date) {
                    ledger.violate(2, "the restored download \(file.path) is no version of \(resource.url)")
                }
            } catch {
                ledger.violate(2, "a restored download fails: \(error)")
            }
        }
        for case .call(let call) in program.actions where call.isDurable {
            if call.kind == .resumable { await continueUpload(call, on: session, files) }
            if call.kind == .download, program.family.isDurable { await repeatDownload(call, on: session, files) }
        }
        for case .call(let call) in program.actions where call.kind == .data && call.method == .get {
            var call = call
            call.number += 100
            let runner = CallRunner(call: call, program: program, world: world, ledger: ledger, directory: files.path)
            try? await runner.perform(on: session)
        }
    }

    /// A file of a download has all of its bytes after a crash, except that a power failure may take those of a download
    /// that is not durable.
    private func judgeFiles(_ files: FileWorld) {
        let calls = program.actions.compactMap {
            if case .call(let call) = $0, call.kind == .download { call } else { nil }
        }
        let left = files.files()
        for call in calls where call.isDurable && !call.changesDurability && files.hasCompleted(call.number) {
            // Where the directory could not be flushed, the download can be continued.
            let isThere = ["", ".part.json"].contains { left["d\(call.number)\($0)"] != nil }
            if !isThere {
                ledger.violate(2, "the file of download \(call.number) is gone after the crash")
            }
        }
        let volatile = calls.filter { !$0.isDurable || $0.changesDurability }.map { "d\($0.number)" }
        for (name, file) in left where name.hasPrefix("d") && !name.contains(".") {
            guard !program.settings.losesPower || !volatile.contains(name) else { continue }
            guard let resource = Resource(ofContent: file.data, seed: program.seed) else {
                if program.settings.losesPower, !Resource.mayBegin(with: file.data) {
                    ledger.violate(2, "\(name) has the bytes of no resource after the crash")
                }
                continue
            }
            ledger.cover("oracle.2.crash")
            if !resource.isWhole(file.data, at: ledger.date) {
                ledger.violate(2, "\(name) is no whole file after the crash")
            }
        }
    }

    /// Performs a durable download again, for which nothing that the earlier process has left is an obstacle.
    private func repeatDownload(_ call: Program.Call, on session: SessionManager, _ files: FileWorld) async {
        ledger.update { $0.calls[call.number] = nil }
        var call = call
        (call.timeout, call.suspendAfter, call.retryLimit, call.cacheMode) = (nil, nil, nil, 0)
        let runner = CallRunner(call: call, program: program, world: world, ledger: ledger, directory: files.path)
        do {
            try await runner.perform(on: session)
            ledger.cover("download.repeated")
        } catch {
            ledger.violate(2, "the download of call \(call.number) fails after the crash: \(error)")
        }
    }

    /// Begins a durable upload again, which goes on with the upload of its record, if that has one.
    private func continueUpload(_ call: Program.Call, on session: SessionManager, _ files: FileWorld) async {
        let isKnown = files.hasRecord(of: "u\(call.number)")
        if files.wasContinuing(call.number) {
            ledger.cover("upload.continued")
            if !isKnown { ledger.violate(2, "the upload of call \(call.number) has no record after the crash") }
        }
        ledger.update { $0.calls[call.number] = nil }
        var call = call
        (call.timeout, call.suspendAfter, call.retryLimit) = (nil, nil, nil)
        let runner = CallRunner(call: call, program: program, world: world, ledger: ledger, directory: files.path)
        // A 403 may mean a missing credential; a server that has forgotten the upload gives other answers, too.
        for attempt in 1...10 {
            do {
                try await runner.perform(on: session)
                break
            } catch {
                if attempt < 10, isKnown, "\(error)".contains("status 403") { continue }
                if case .upload(.outcomeUnknown)? = error as? SessionError { break }
                ledger.violate(2, "the upload of call \(call.number) fails after the crash: \(error)")
                break
            }
        }
        guard isKnown else { return }
        ledger.cover("upload.restored")
        if let first = ledger.arrivals(of: call.number).first, first.request.method != .head {
            ledger.violate(2, "the upload of call \(call.number) ignores its record after the crash")
        }
    }

    // MARK: Actions

    private func perform(
        on sessions: [SessionManager], _ authenticator: Authenticator?, _ directory: String
    ) async throws {
        // Ends with the actions, on which it has no effect.
        let watch = Task { try await watchQueue(of: sessions[0]) }
        defer { watch.cancel() }
        try await performActions(on: sessions, authenticator, directory)
    }

    /// Judges the queue of tasks at times at which nothing else happens.
    private func watchQueue(of session: SessionManager) async throws {
        guard let limit = program.settings.maximumConcurrentTasks else { return }
        // Rarer in a long program, and not forever, so that one in which nothing else happens is a hang.
        while ledger.facts.sessionClosed == nil, ledger.now < 600_000_000_000 {
            try await world.clock.sleep(for: .nanoseconds(7_000_311 + ledger.now / 20))
            Oracles.queue(session, limit, ledger)
        }
    }

    private func performActions(
        on sessions: [SessionManager], _ authenticator: Authenticator?, _ directory: String
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for action in program.actions {
                ledger.cover(action.name)
                switch action {
                case .call(let call):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(call.start))
                        try await perform(call, on: sessions[call.session], directory)
                    }
                case .removeToken(let time):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(time) + apart(999))
                        await authenticator?.setToken(nil)
                        ledger.update { [now = ledger.now] in $0.tokensRemoved = now }
                        world.mark("test", "•", "the token is removed")
                    }
                case .moveDate(let time, let seconds):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(time))
                        ledger.update { $0.dateWasMoved = true }
                        world.moveDate(by: .seconds(seconds))
                        world.mark("test", "•", "the date moves by \(seconds) s")
                    }
                case .shutDown(let time, let limit):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(time) + apart(997))
                        world.mark("test", "●", "shut down", isOpen: true)
                        ledger.update { [now = ledger.now] in $0.sessionClosed = now }
                        let begin = ledger.now
                        for session in sessions { await session.shutdown(draining: limit.map { .milliseconds($0) }) }
                        ledger.update { [now = ledger.now] in $0.sessionEnd = now }
                        let milliseconds = (ledger.now - begin) / 1_000_000
                        if let limit, milliseconds > Int64(limit) + Oracles.grace {
                            ledger.violate(6, "shutting down takes \(milliseconds) ms, with a limit of \(limit) ms")
                        }
                        try await world.clock.sleep(for: .nanoseconds(500))
                        Oracles.judgeEnd(ledger)
                        world.mark("test", "|", "shut down", isOpen: false)
                    }
                case .invalidate(let time, let cancelling):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(time) + apart(997))
                        world.mark("test", "●", "invalidate", isOpen: true)
                        ledger.update { [now = ledger.now] in $0.sessionClosed = now }
                        for session in sessions { await session.invalidate(cancellingTasks: cancelling) }
                        if cancelling { ledger.update { [now = ledger.now] in $0.sessionEnd = now } }
                        world.mark("test", "|", "invalidate", isOpen: false)
                        guard cancelling else { return }
                        try await world.clock.sleep(for: .milliseconds(Oracles.grace))
                        Oracles.judgeInvalidation(ledger)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// A number of nanoseconds, by which the time of something is one at which nothing else happens; zero in a program
    /// in which it coincides with other events.
    private func apart(_ count: Int) -> Duration { program.settings.coincides ? .zero : .nanoseconds(count) }

    private func perform(_ call: Program.Call, on session: SessionManager, _ directory: String) async throws {
        let lane = "c\(call.number)"
        let (now, date) = (ledger.now, ledger.date)
        ledger.update {
            $0.calls[call.number] = Ledger.Ending(begin: now, isGroup: call.kind == .group, beginDate: date)
        }
        world.mark(lane, "●", "\(call.kind) \(call.method) \(call.host)/r/\(call.resource)", isOpen: true)
        let runner = CallRunner(call: call, program: program, world: world, ledger: ledger, directory: directory)
        let task = Task { try await runner.perform(on: session) }
        let result = try await withThrowingTaskGroup(of: Result<Void, any Error>?.self) { group in
            group.addTask { await task.result }
            if let cancel = call.cancelAfter {
                group.addTask {
                    try? await world.clock.sleep(for: .milliseconds(cancel) + apart(call.number))
                    guard !Task.isCancelled else { return nil }
                    ledger.update { [now = ledger.now] in $0.calls[call.number]?.cancelled = now }
                    world.mark(lane, "×", "cancel")
                    task.cancel()
                    return nil
                }
            }
            var result: Result<Void, any Error>?
            while result == nil, let next = try await group.next() { result = next }
            group.cancelAll()
            return result
        }
        let end = ledger.now
        ledger.update { state in
            state.calls[call.number]?.end = end
            if case .failure(let error) = result {
                state.calls[call.number]?.failure = "\(error)"
                state.calls[call.number]?.isCancellation = error is CancellationError
                let sessionError = error as? SessionError
                state.calls[call.number]?.reason = sessionError?.reason
                state.calls[call.number]?.earlierAttempts = sessionError?.retryHistory.earlierAttempts.count
                switch sessionError?.reason {
                case .cannotResolve?: state.calls[call.number]?.isRouteFailure = true
                case .cannotConnect(.unreachable)?:
                    state.calls[call.number]?.isConnectionFailure = true
                    state.calls[call.number]?.isRouteFailure = true
                case .connectionLost?, .cannotConnect?: state.calls[call.number]?.isConnectionFailure = true
                default: break
                }
            }
        }
        switch result {
        case .failure(let error):
            if !(error is SessionError || error is CancellationError || error is RefreshFailure) {
                ledger.violate(8, "call \(call.number) ends with an error of a lower layer: \(type(of: error))")
            }
            let name = Self.name(error)
            ledger.cover("end.\(name)")
            world.mark(lane, "✕", name, isOpen: false)
        default:
            ledger.cover("end.success")
            world.mark(lane, "|", "success", isOpen: false)
        }
        Oracles.judge(call, program, ledger)
    }

    /// A name for the kind of an error, without details.
    private static func name(_ error: any Error) -> String {
        if error is CancellationError { return "CancellationError" }
        if let reason = (error as? SessionError)?.reason { return String("\(reason)".prefix { $0 != "(" }) }
        switch error as? SessionError {
        case .notCached?: return "SessionError.notCached"
        case .invalidated?: return "SessionError.invalidated"
        default: break
        }
        // That of an enumeration, but not the text of its facts, such as paths.
        let name = error is RefreshFailure ? nil : Mirror(reflecting: error).children.first?.label ?? "\(error)"
        return "\(type(of: error))" + (name.map { ".\($0)" } ?? "")
    }
}
