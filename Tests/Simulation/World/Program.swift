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
    }

    /// The session's configuration, and how bad the world is.
    struct Settings: Sendable {
        var faultRate = 0.0
        var retryLimit = 0
        var hasRetryBudget = true
        var usesTokens = false
        var tokenLifetime = 60
        var usesCache = false
        var sharesTransfers = false
        var maximumConcurrentTransfers: Int?
        var idleTimeout = 60
        /// How many operations on files fail, and the number of that at which the program crashes; 0 for none.
        var fileFaultRate = 0.0
        var crashesAt = 0
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
        enum Kind: String, CaseIterable, Sendable { case data, streamed, task, download, events, upload }
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
    }
}

extension Program {
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
        settings.sharesTransfers = settings.usesCache && chance(50)
        if family == .files {
            settings.fileFaultRate = chance(50) ? 0 : 0.1
            if chance(60) { settings.crashesAt = number(1...60) }
        }
        if family == .tasks || chance(10) { settings.maximumConcurrentTransfers = number(1...3) }
        actions = []
        let hosts = family == .tokens ? ["a.test", "a.test", "b.test"] : Origins.hosts
        for index in 1...number(2...8) {
            let kinds: [Call.Kind] =
                switch family {
                case .calls, .ends: [.data, .data, .streamed, .upload]
                case .tokens: [.data, .streamed]
                case .cache: [.data, .data, .streamed]
                case .downloads: [.download]
                case .files: [.download, .download, .data]
                case .events: [.events]
                case .tasks: [.task, .task, .download]
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
    }
}
