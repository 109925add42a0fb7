// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import HTTPTypes

/// What a simulated program does: calls that run concurrently, and events of the whole session.
///
/// It is a value that a seed determines, so that a failing one can be shrunk by leaving actions out.
struct Program: Sendable {
    var family: Family
    var seed: UInt64
    var settings: Settings
    var actions: [Action]

    enum Family: String, CaseIterable, Sendable {
        case calls, tokens, cache, downloads, files, events, tasks, ends
        case interceptors, uploads, routes, partitions, groups, sockets, mixed, segments, resumable, durable
        case failures, races, combined, storage

        /// Whether a program of the family may have each part of the world.
        fileprivate var isExtended: Bool {
            switch self {
            case .calls, .tokens, .cache, .downloads, .files, .events, .tasks, .ends, .segments, .resumable, .durable,
                .storage:
                false
            case .interceptors, .uploads, .routes, .partitions, .groups, .sockets, .mixed, .failures, .races, .combined:
                true
            }
        }

        /// Whether another process goes on with downloads and uploads after a crash or a power failure.
        var isDurable: Bool { self == .durable || self == .storage }
    }

    /// The session's configuration, and how bad the world is.
    struct Settings: Sendable {
        var faultRate = 0.0
        var retryLimit = 0
        var hasRetryBudget = true
        var usesTokens = false
        var tokenLifetime = 60
        var usesCache = false
        var coalescesRequests = false
        var maximumConcurrentTasks: Int?
        var idleTimeout = 60
        /// Those around calls, and those around exchanges.
        var interceptors: [Interception] = []
        var attemptInterceptors: [Interception] = []
        /// The share of request bodies that a server does not receive to their end.
        var uploadFaultRate = 0.0
        /// The number of exchanges with a host at a time; `nil` for no limit.
        var connectionsPerHost: Int?
        /// Whether servers answer while request bodies are still being sent.
        var answersMeanwhile = false
        /// When there is no route to any host, in milliseconds, in ascending order.
        var outages: [Range<Int>] = []
        var waitsForConnectivity = false
        var connectivityTimeout: Int?
        /// The cache partitions of the sessions that share the cache; `nil` for a session of its own.
        var partitions: [String?] = ["user"]
        /// How many operations on files fail, and the number of that at which the program crashes; 0 for none.
        var fileFaultRate = 0.0
        var crashesAt = 0
        /// The share of writes that accept only some of their bytes, and the operation before which someone removes the
        /// directory of the cache, or of all files; 0 for none.
        var shortWriteRate = 0.0
        var cacheVanishesAt = 0
        var vanishesAt = 0
        /// Whether the power fails at the crash, so that what was not flushed may be lost.
        var losesPower = false
        /// The number of segments of downloads; 0 for as many as add speed.
        var segments = 1
        /// The length of the pieces that downloads know the digests of, 0 for none, and the share of responses with ranges
        /// that have a wrong byte.
        var pieceLength = 0
        var lieRate = 0.0
        /// The share of pread(2) and lseek(2) that fail, and of rename(2) to another file system.
        var readFaultRate = 0.0
        var crossingRate = 0.0
        /// Whether cancellations, ends of the session and removed tokens come at the same times as other events.
        var coincides = false
        /// Whether the transport notices a cancellation only after some time.
        var isLate = false
        /// The library's own interceptors: a second request for one that takes long, the number of requests in a second,
        /// failing fast, and shared responses.
        var hedges = false
        var requestsPerSecond: Int?
        var breaksCircuits = false
        var sharesResponses = false

        /// Whether the requests of one call by an interceptor make a cache validate responses in the background.
        var mayValidateAgain: Bool { usesCache && hasInterceptors }
        /// Whether an interceptor may change, delay or repeat requests.
        var hasInterceptors: Bool {
            !(interceptors + attemptInterceptors).isEmpty || hedges || requestsPerSecond != nil || breaksCircuits
                || sharesResponses
        }
        /// Whether an interceptor answers requests without the network.
        var answersItself: Bool { (interceptors + attemptInterceptors).contains(.answer) }
        /// Whether interceptors or downloads send requests of one call at the same time.
        var sendsConcurrently: Bool {
            segments != 1 || hedges || (interceptors + attemptInterceptors).contains(.concurrent)
        }
    }

    enum Action: Sendable {
        case call(Call)
        /// Removes the token of the authenticator.
        case removeToken(at: Int)
        case moveDate(at: Int, seconds: Int)
        case shutDown(at: Int, draining: Int?)
        case invalidate(at: Int, cancelling: Bool)

        var name: String {
            switch self {
            case .call(let call): "call.\(call.kind)"
            case .removeToken: "removeToken"
            case .moveDate: "moveDate"
            case .shutDown: "shutDown"
            case .invalidate: "invalidate"
            }
        }
    }

    struct Call: Sendable {
        enum Kind: String, CaseIterable, Sendable {
            case data, streamed, task, download, events, upload, group, socket, resumable

            /// Those that were there first, whose programs must stay the same.
            static let first = allCases.filter { $0 != .resumable }
        }
        var number: Int
        var kind: Kind
        var method: HTTPRequest.Method
        var host: String
        var resource: Int
        /// The start, in milliseconds.
        var start: Int
        var cancelAfter: Int?
        var suspendAfter: Int?
        var timeout: Int?
        var retryLimit: Int?
        var hasIdempotencyKey = false
        var cookie = false
        var cacheMode = 0
        var language: String?
        var isDurable = false
        /// Whether each resumption of a download is durable if the one before was not, and the reverse.
        var changesDurability = false
        /// The session that performs the call.
        var session = 0
        var body = Body.text
        /// The number of messages of a WebSocket, and of tasks in a group.
        var count = 2
        var reconnects = false
        var upload = Upload()
    }

    /// The parameters of a resumable upload.
    struct Upload: Sendable {
        var length = 0
        var usesTus = false
        var discovers = false
        var partSize: Int64?
        var verifies = false

        fileprivate init(_ random: inout SplitMix64) {
            func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
            length = [0, 1, 40, 300, 1_500][number(0...4)]
            usesTus = number(1...100) <= 50
            discovers = number(1...100) <= 50
            partSize = [nil, 20, 50, 400][number(0...3)]
            verifies = number(1...100) <= 30
        }

        init() {}
    }

    /// The body of an upload.
    enum Body: Int, CaseIterable, Sendable {
        case text, bytes, file, stream, replayableStream, task
    }
}

extension Program {
    /// Whether the cancellation of a call starts no other one: there is no queue, no shared transfer, and no group whose
    /// tasks are cancelled at the same time.
    var endsAlone: Bool {
        settings.maximumConcurrentTasks == nil && !settings.usesCache
            && !actions.contains { if case .call(let call) = $0 { call.kind == .group } else { false } }
    }

    /// Creates the program of a seed.
    init(_ family: Family, seed: UInt64) {
        var random = SplitMix64(seed: seed ^ 0x0F00_D5EE)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
        self.family = family
        self.seed = seed
        settings = Settings()
        settings.faultRate = [0, 0.1, 0.3, 0.6][number(0...3)]
        settings.retryLimit = [0, 1, 2, 4][number(0...3)]
        settings.hasRetryBudget = chance(50)
        settings.idleTimeout = [2, 60][number(0...1)]
        settings.usesTokens = family == .tokens || chance(20)
        settings.tokenLifetime = [1, 2, 10, 3_600][number(0...3)]
        settings.usesCache = family == .cache || family == .files || chance(20)
        settings.coalescesRequests = settings.usesCache && chance(50)
        if family == .files {
            settings.fileFaultRate = chance(50) ? 0 : 0.1
            if chance(60) { settings.crashesAt = number(1...60) }
        }
        if family == .tasks || chance(10) { settings.maximumConcurrentTasks = number(1...3) }
        actions = []
        let hosts = family == .tokens ? ["a.test", "a.test", "b.test"] : Origins.hosts
        for index in 1...number(2...8) {
            let kinds: [Call.Kind] =
                switch family {
                case .calls, .ends: [.data, .data, .streamed, .upload]
                case .tokens: [.data, .streamed]
                case .cache: [.data, .data, .streamed]
                case .downloads, .segments: [.download]
                case .files: [.download, .download, .data]
                case .events: [.events]
                case .tasks: [.task, .task, .download]
                case .interceptors: [.data, .data, .streamed, .task, .download]
                case .uploads: [.upload]
                case .routes: [.data, .streamed, .upload, .download]
                case .partitions: [.data, .data, .streamed]
                case .groups: [.group]
                case .sockets: [.socket]
                case .resumable: [.resumable]
                case .durable, .storage: [.download, .download, .download, .resumable, .data]
                case .mixed, .races: Call.Kind.first
                case .failures: [.data, .data, .streamed, .task, .upload, .upload, .download]
                case .combined: [.data, .data, .streamed, .task, .upload, .download, .events, .socket]
                }
            var call = Call(
                number: index, kind: kinds[number(0...(kinds.count - 1))], method: .get,
                host: hosts[number(0...(hosts.count - 1))], resource: number(0...(family == .cache ? 2 : 5)),
                start: number(0...3) * number(0...(family == .cache ? 3_000 : 400)))
            if call.kind == .upload { call.method = [.post, .put][number(0...1)] }
            if call.kind == .data, chance(35) { call.method = [.post, .put, .delete, .head, .patch][number(0...4)] }
            if chance(25) { call.cancelAfter = number(0...1) * number(0...300) }
            if call.kind == .task || call.kind == .download, chance(30) { call.suspendAfter = number(0...200) }
            if chance(15) { call.timeout = number(1...3_000) }
            if chance(20) { call.retryLimit = number(0...3) }
            call.hasIdempotencyKey = chance(15)
            call.cookie = chance(30)
            if settings.usesCache { call.cacheMode = chance(30) ? number(1...6) : 0 }
            call.language = [nil, "de", "en"][number(0...2)]
            call.isDurable = family == .files && chance(60)
            actions.append(.call(call))
        }
        if settings.usesTokens, chance(50) { actions.append(.removeToken(at: number(0...500))) }
        if chance(10) { actions.append(.moveDate(at: number(0...3_000), seconds: number(-20...20))) }
        if family == .ends {
            actions.append(
                chance(50)
                    ? .shutDown(at: number(0...300), draining: chance(50) ? number(0...500) : nil)
                    : .invalidate(at: number(0...300), cancelling: chance(60)))
        }
        if family.isExtended { extend() }
        if family == .files { extendFiles() }
        if family == .segments { extendSegments() }
        if family == .resumable { extendUploads() }
        if family.isDurable { extendDurable() }
        extendLatest()
        var others = SplitMix64(seed: seed ^ 0x11A1_7ED)
        // The requests of an interceptor that waits for all of them would wait for one another.
        let waitsForAll = (settings.interceptors + settings.attemptInterceptors).contains(.concurrent)
        if Int.random(in: 0...5, using: &others) == 0, !waitsForAll {
            settings.connectionsPerHost = .random(in: 1...2, using: &others)
        }
    }

    /// Adds what makes the families that came last.
    private mutating func extendLatest() {
        var random = SplitMix64(seed: seed ^ 0x1A7E_57)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
        switch family {
        case .failures:
            (settings.usesTokens, settings.usesCache, settings.coalescesRequests) = (false, false, false)
            settings.faultRate = [0.3, 0.6][number(0...1)]
            (settings.uploadFaultRate, settings.answersMeanwhile) = ([0, 0.2][number(0...1)], chance(60))
            actions.removeAll { if case .removeToken = $0 { true } else { false } }
            for index in actions.indices {
                guard case .call(var call) = actions[index], call.kind == .streamed, chance(50) else { continue }
                call.method = [.post, .put][number(0...1)]
                actions[index] = .call(call)
            }
        case .races: (settings.coincides, settings.isLate) = (true, chance(50))
        case .combined:
            settings.hedges = chance(50)
            settings.requestsPerSecond = chance(50) ? settings.hedges ? number(20...60) : number(1...6) : nil
            settings.breaksCircuits = chance(30)
            settings.sharesResponses = !settings.usesCache && chance(50)
            settings.coincides = chance(30)
            settings.uploadFaultRate = [0, 0.2][number(0...1)]
            settings.answersMeanwhile = chance(50)
            settings.segments = [1, 1, 0, 3][number(0...3)]
            // An open circuit permits stale responses, although no server has failed.
            if settings.sharesResponses { makeAlike(&random) }
            if settings.breaksCircuits { (settings.usesCache, settings.coalescesRequests) = (false, false) }
            // Segments and second requests may send a token that another request has just learned to be invalid.
            if settings.sendsConcurrently { settings.usesTokens = false }
        case .storage:
            settings.readFaultRate = [0, 0.05, 0.2][number(0...2)]
            settings.crossingRate = [0, 0.2, 0.6][number(0...2)]
        default: return
        }
        guard family == .races || family == .combined, chance(35) else { return }
        actions.append(
            chance(50)
                ? .shutDown(at: number(0...600), draining: chance(50) ? number(0...500) : nil)
                : .invalidate(at: number(0...600), cancelling: chance(60)))
    }

    /// Makes requests identical, and cancels most of them.
    private mutating func makeAlike(_ random: inout SplitMix64) {
        for index in actions.indices {
            guard case .call(var call) = actions[index], call.kind == .data else { continue }
            (call.method, call.host, call.cookie, call.language) = (.get, "c.test", false, nil)
            (call.retryLimit, call.hasIdempotencyKey, call.cacheMode) = (nil, false, 0)
            (call.resource, call.start) = (.random(in: 0...1, using: &random), .random(in: 0...30, using: &random))
            call.cancelAfter = Bool.random(using: &random) ? .random(in: 0...60, using: &random) : nil
            actions[index] = .call(call)
        }
    }

    /// Makes uploads resumable, and perhaps kills the program while they run.
    private mutating func extendUploads() {
        var random = SplitMix64(seed: seed ^ 0x0B10_AD5)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
        (settings.usesTokens, settings.usesCache, settings.coalescesRequests) = (false, false, false)
        settings.uploadFaultRate = [0, 0.2, 0.4][number(0...2)]
        if chance(30) { settings.fileFaultRate = 0.1 }
        if chance(50) { settings.crashesAt = number(1...20) }
        for index in actions.indices {
            guard case .call(var call) = actions[index] else { continue }
            call.method = [.post, .put][number(0...1)]
            (call.isDurable, call.cacheMode) = (chance(60), 0)
            if chance(30) { call.suspendAfter = number(0...300) }
            call.upload = Upload(&random)
            actions[index] = .call(call)
        }
        actions.removeAll { if case .removeToken = $0 { true } else { false } }
    }

    /// Makes downloads and uploads durable, downloads perhaps segmented, and kills the program or cuts its power while its
    /// files fail.
    private mutating func extendDurable() {
        var random = SplitMix64(seed: seed ^ 0x0D04_AB1E)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
        settings.usesTokens = false
        settings.usesCache = chance(50)
        settings.coalescesRequests = false
        settings.segments = [0, 1, 2, 3, 4][number(0...4)]
        settings.fileFaultRate = [0, 0, 0.03, 0.1][number(0...3)]
        settings.shortWriteRate = [0, 0.3][number(0...1)]
        settings.uploadFaultRate = [0, 0.2][number(0...1)]
        if chance(80) { settings.crashesAt = number(1...[20, 60, 200][number(0...2)]) }
        settings.losesPower = chance(75)
        actions = Array(actions.prefix(4))
        for index in actions.indices {
            guard case .call(var call) = actions[index] else { continue }
            call.isDurable = chance(80)
            call.changesDurability = chance(20)
            if call.kind == .resumable {
                (call.method, call.cacheMode) = ([.post, .put][number(0...1)], 0)
                call.upload = Upload(&random)
                // Many small parts take many steps, which the family `resumable` takes.
                call.upload.partSize = call.upload.partSize.map { max($0, 400) }
            }
            actions[index] = .call(call)
        }
        actions.removeAll { if case .removeToken = $0 { true } else { false } }
    }

    /// Makes downloads segmented, of resources that have several segments.
    private mutating func extendSegments() {
        var random = SplitMix64(seed: seed ^ 0x5E63_E275)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        settings.segments = [0, 2, 3, 4, 6][number(0...4)]
        // Segments in flight may send a token that another one has just learned to be invalid.
        settings.usesTokens = false
        for index in actions.indices {
            guard case .call(var call) = actions[index] else { continue }
            call.isDurable = number(0...1) == 0
            actions[index] = .call(call)
        }
        // Interceptors may change bodies.
        guard number(0...1) == 0, (settings.interceptors + settings.attemptInterceptors).isEmpty else { return }
        settings.pieceLength = [40, 100, 500, 4_000][number(0...3)]
        settings.lieRate = [0, 0.1, 0.5][number(0...2)]
    }

    /// Adds the faults of files that came later.
    private mutating func extendFiles() {
        var random = SplitMix64(seed: seed ^ 0x0F11_E5)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        settings.shortWriteRate = [0, 0.3][number(0...1)]
        guard settings.crashesAt == 0 else { return }
        switch number(0...4) {
        case 0: settings.cacheVanishesAt = number(1...60)
        case 1: settings.vanishesAt = number(1...60)
        default: break
        }
    }

    /// Adds the parts of the world that came later. They have random numbers of their own, so that the programs of the
    /// seeds before are the same.
    private mutating func extend() {
        var random = SplitMix64(seed: seed ^ 0x0E47_E4DE_D000)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        func chance(_ percent: Int) -> Bool { number(1...100) <= percent }
        func interceptions() -> [Interception] {
            (0..<number(0...2)).map { _ in Interception.allCases[number(0...(Interception.allCases.count - 1))] }
        }
        let isMixed = family == .mixed || family == .races
        if family == .interceptors || isMixed && chance(30) {
            (settings.interceptors, settings.attemptInterceptors) = (interceptions(), interceptions())
        }
        if family == .uploads || isMixed && chance(50) { settings.uploadFaultRate = [0.1, 0.4][number(0...1)] }
        if family == .routes || isMixed && chance(30) {
            var time = number(0...300)
            for _ in 0..<number(1...3) {
                let end = time + number(1...2_000)
                settings.outages.append(time..<end)
                time = end + number(1...500)
            }
            settings.waitsForConnectivity = chance(80)
            if chance(30) { settings.connectivityTimeout = number(1...2_000) }
        }
        if family == .partitions {
            (settings.usesCache, settings.usesTokens) = (true, false)
            settings.coalescesRequests = chance(50)
            settings.partitions = ["first", "second", "first", nil, nil]
        }
        if family == .groups, chance(50) { settings.maximumConcurrentTasks = number(1...3) }
        for index in actions.indices {
            guard case .call(var call) = actions[index] else { continue }
            call.session = number(0...(settings.partitions.count - 1))
            call.body = Body.allCases[number(0...(Body.allCases.count - 1))]
            call.count = number(1...4)
            call.reconnects = chance(50)
            if call.kind == .upload { call.method = [.post, .put][number(0...1)] }
            if call.kind == .group, chance(40) { call.suspendAfter = number(0...200) }
            // Without a limit, a source that fails each time does not end.
            if call.kind == .events { (call.retryLimit, call.timeout) = (number(0...3), nil) }
            if settings.usesCache, settings.partitions.count > 1 { call.resource = number(0...1) }
            actions[index] = .call(call)
        }
        if family == .uploads || isMixed {
            var random = SplitMix64(seed: seed ^ 0xEA21_1E5)
            settings.answersMeanwhile = Int.random(in: 0...2, using: &random) == 0
            for index in actions.indices where settings.answersMeanwhile {
                guard case .call(var call) = actions[index], call.kind == .upload, call.body == .task else { continue }
                call.suspendAfter = Int.random(in: 0...150, using: &random)
                actions[index] = .call(call)
            }
        }
        if isMixed, chance(20) {
            actions.append(
                chance(50)
                    ? .shutDown(at: number(0...600), draining: chance(50) ? number(0...500) : nil)
                    : .invalidate(at: number(0...600), cancelling: chance(60)))
        }
    }
}
