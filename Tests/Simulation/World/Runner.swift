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
        let files = try FileWorld(world, ledger, program.settings)
        defer { files.remove() }
        weak var survivor: SessionManager?
        do {
            let (session, authenticator) = makeSession(program.settings, files)
            survivor = session
            try await perform(on: session, authenticator, files.path)
            // Longer than any limit of what goes on in the background.
            try await world.clock.sleep(for: .seconds(1_000))
            let tasks = session.tasks
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

    // MARK: The session

    private func makeSession(
        _ settings: Program.Settings, _ files: FileWorld
    ) -> (SessionManager, Authenticator?) {
        var program = program
        program.settings = settings
        let origins = Origins(world: world, ledger: ledger, program: program)
        let transport = SimulatedTransport(
            world: world,
            observing: { [ledger] request, event in
                guard let id = request.headers[.call].flatMap({ Int($0) }) else { return }
                if case .begin = event { return Oracles.judge(exchangeOf: id, ledger, settings) }
                ledger.update { state in
                    guard let index = state.arrivals.lastIndex(where: { $0.call == id && $0.isOpen }) else { return }
                    switch event {
                    case .begin: break
                    case .head: state.arrivals[index].hasHead = true
                    case .end: state.arrivals[index].isOpen = false
                    }
                }
            }
        ) { try await origins.answer($0) }
        let authenticator = settings.usesTokens ? makeAuthenticator(settings) : nil
        let session = SessionManager {
            $0.transport = transport
            $0.clock = world.clock
            $0.routes = NoRoutes()
            $0.sendsDefaultHeaders = false
            $0.retryPolicy = CallRunner.retryPolicy(settings.retryLimit, settings, ledger)
            $0.timeouts.idle = .seconds(settings.idleTimeout)
            $0.maximumConcurrentTransfers = settings.maximumConcurrentTransfers
            if settings.usesCache {
                $0.cache =
                    program.family == .files ? .disk("\(files.path)/cache", memory: 20_000) : .memory(200_000)
                $0.cachePartition = "user"
            }
            $0.sharesTransfers = settings.sharesTransfers
            if let authenticator { $0.authentication.authenticators = [authenticator] }
            $0.authentication.credentials[Resource.root(of: "b.test")] = Credential(
                user: "user", password: "secret", schemes: [.basic])
        }
        return (session, authenticator)
    }

    private func makeAuthenticator(_ settings: Program.Settings) -> Authenticator {
        Authenticator(
            for: [Resource.root(of: "a.test")], leeway: .zero, refreshLimit: 1_000
        ) { [world, ledger] current in
            let number = ledger.update { state in
                state.refreshesRunning += 1
                return state.tokens.count + state.refreshesRunning
            }
            defer { ledger.update { $0.refreshesRunning -= 1 } }
            Oracles.judge(refreshOf: current?.value, ledger)
            let issued = ledger.now
            ledger.cover("refresh")
            try await world.pause(.zero ... .milliseconds(200))
            if world.chance(settings.faultRate / 4) {
                ledger.cover("refresh.fails")
                throw RefreshFailure()
            }
            let name = "t\(number)-\(issued)"
            let expires = ledger.date + Int64(settings.tokenLifetime) * 1_000
            ledger.update { $0.tokens[name] = (expires, issued) }
            return BearerToken(name, expires: Date(timeIntervalSince1970: Double(expires) / 1_000))
        }
    }

    private struct RefreshFailure: Error {}

    /// A machine whose routes are never the reason of a failure.
    private struct NoRoutes: RouteSource {
        func isUnreachable(_ target: ReachabilityTarget) async -> Bool { false }
        func waitForRoute(to target: ReachabilityTarget) async throws(CancellationError) {}
    }

    /// Begins a new session with the files that a crash has left, and completes its downloads.
    private func restart(after files: FileWorld) async throws {
        guard let call = try files.restoreCrash() else { return }
        world.mark("test", "●", "restart after a crash before \(call)")
        for (name, data) in files.files() where name.hasPrefix("d") && !name.contains(".") {
            guard let resource = Resource(ofContent: data, seed: program.seed) else { continue }
            ledger.cover("oracle.2.crash")
            if !resource.isWhole(data, at: ledger.date) {
                ledger.violate(2, "\(name) is no whole file after the crash")
            }
        }
        // The requests of the new session are not those of the old one.
        ledger.update { state in for index in state.arrivals.indices { state.arrivals[index].call = 0 } }
        var settings = program.settings
        (settings.faultRate, settings.maximumConcurrentTransfers) = (0, nil)
        let (session, _) = makeSession(settings, files)
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
        for case .call(let call) in program.actions where call.kind == .data && call.method == .get {
            var call = call
            call.number += 100
            let runner = CallRunner(call: call, program: program, world: world, ledger: ledger, directory: files.path)
            try? await runner.perform(on: session)
        }
    }

    // MARK: Actions

    private func perform(on session: SessionManager, _ authenticator: Authenticator?, _ directory: String) async throws
    {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for action in program.actions {
                ledger.cover(action.name)
                switch action {
                case .call(let call):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(call.start))
                        try await perform(call, on: session, directory)
                    }
                case .removeToken(let time):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(time) + .nanoseconds(999))
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
                        try await world.clock.sleep(for: .milliseconds(time) + .nanoseconds(997))
                        world.mark("test", "●", "shut down", isOpen: true)
                        ledger.update { [now = ledger.now] in $0.sessionClosed = now }
                        await session.shutdown(draining: limit.map { .milliseconds($0) })
                        ledger.update { [now = ledger.now] in $0.sessionEnd = now }
                        try await world.clock.sleep(for: .nanoseconds(500))
                        Oracles.judgeEnd(ledger)
                        world.mark("test", "|", "shut down", isOpen: false)
                    }
                case .invalidate(let time, let cancelling):
                    group.addTask {
                        try await world.clock.sleep(for: .milliseconds(time) + .nanoseconds(997))
                        world.mark("test", "●", "invalidate", isOpen: true)
                        ledger.update { [now = ledger.now] in $0.sessionClosed = now }
                        await session.invalidate(cancellingTasks: cancelling)
                        if cancelling { ledger.update { [now = ledger.now] in $0.sessionEnd = now } }
                        world.mark("test", "|", "invalidate", isOpen: false)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func perform(_ call: Program.Call, on session: SessionManager, _ directory: String) async throws {
        let lane = "c\(call.number)"
        let (now, date) = (ledger.now, ledger.date)
        ledger.update { $0.calls[call.number] = Ledger.Ending(begin: now, beginDate: date) }
        world.mark(lane, "●", "\(call.kind) \(call.method) \(call.host)/r/\(call.resource)", isOpen: true)
        let runner = CallRunner(call: call, program: program, world: world, ledger: ledger, directory: directory)
        let task = Task { try await runner.perform(on: session) }
        let result = try await withThrowingTaskGroup(of: Result<Void, any Error>?.self) { group in
            group.addTask { await task.result }
            if let cancel = call.cancelAfter {
                group.addTask {
                    // At a time of its own, at which nothing else happens.
                    try? await world.clock.sleep(for: .milliseconds(cancel) + .nanoseconds(call.number))
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
                state.calls[call.number]?.earlierAttempts = sessionError?.retryHistory.earlierAttempts.count
                switch sessionError?.reason {
                case .connectionLost?, .cannotConnect?: state.calls[call.number]?.isConnectionFailure = true
                default: break
                }
            }
        }
        switch result {
        case .failure(let error):
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
        let text = (error as? SessionError)?.reason.map { "\($0)" } ?? "\(type(of: error)).\(error)"
        return String(text.prefix { $0 != "(" && $0 != ":" && $0 != " " })
    }
}
