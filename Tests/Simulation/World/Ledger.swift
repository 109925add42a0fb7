// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// What has happened in a simulated world: the facts that the oracles judge.
final class Ledger: Sendable {
    let world: SimulatedWorld
    private let state = Lock(State())

    init(_ world: SimulatedWorld) {
        self.world = world
    }

    /// A request that a server received, and what became of it.
    struct Arrival: Sendable {
        enum Outcome: Sendable {
            /// The request did not reach the server, or no answer has been given.
            case refused, lost, silent
            case status(Int)
        }
        let number: Int
        var call: Int
        let request: Request
        let time: Int64
        let date: Int64
        var outcome = Outcome.silent
        var processed = false
        /// Whether a 304 is about the response that the request names.
        var isConfirmation = false
        var responseID: Int?
        var retryAfter: Int?
        var isOpen = true
        /// Whether the head of the response has reached the client.
        var hasHead = false
        /// Whether the program has made another request of its own since, by resuming a download: rules about what the
        /// library repeats begin anew.
        var isOfEarlierRequest = false
    }

    /// The facts of one call.
    struct Ending: Sendable {
        var begin: Int64 = 0
        var beginDate: Int64 = 0
        var cancelled: Int64?
        var end: Int64?
        var failure: String?
        var isCancellation = false
        /// The final status, and the number of attempts before the last one.
        var status: Int?
        var earlierAttempts: Int?
        var isConnectionFailure = false
    }

    struct State: Sendable {
        var arrivals: [Arrival] = []
        var calls: [Int: Ending] = [:]
        var violations: [Violation] = []
        var covered: [String: Int] = [:]
        var tokens: [String: (expires: Int64, issued: Int64)] = [:]
        var tokensRemoved: Int64?
        var revokedTokens: Set<String> = []
        var refusedTokens: Set<String> = []
        var refreshesRunning = 0
        var responses: [Int: ServedResponse] = [:]
        /// When the session stopped accepting requests, and when all of its requests had ended.
        var sessionClosed: Int64?
        var sessionEnd: Int64?
        var dateWasMoved = false
    }

    var now: Int64 { world.clock.now.offset.clampedNanoseconds }
    var date: Int64 { Int64((world.date.timeIntervalSince1970 * 1_000).rounded()) }
    var facts: State { state.withLock(\.self) }

    func update<Value>(_ change: (inout State) -> Value) -> Value {
        state.withLock { change(&$0) }
    }

    /// Records that a part of the world was reached.
    func cover(_ name: String) {
        state.withLock { $0.covered[name, default: 0] += 1 }
    }

    /// Records the violation of an oracle.
    func violate(_ oracle: Int, _ text: String) {
        state.withLock { $0.violations.append(Violation(oracle: oracle, text: text)) }
        world.mark("oracle", "✗", "\(oracle): \(text)")
    }

    /// Records a request that a server receives, and returns its index.
    func arrive(_ request: Request) -> Int {
        let (now, date) = (now, date)
        let call = request.headers[.call].flatMap { Int($0) } ?? 0
        return state.withLock { state in
            state.arrivals.append(
                Arrival(number: state.arrivals.count, call: call, request: request, time: now, date: date))
            return state.arrivals.count - 1
        }
    }

    /// Returns the arrivals of a call.
    func arrivals(of call: Int) -> [Arrival] {
        state.withLock { $0.arrivals.filter { $0.call == call } }
    }
}

/// A thing that may never happen, by the number of its oracle.
struct Violation: Error, CustomStringConvertible, Sendable {
    let oracle: Int
    let text: String
    var description: String { "oracle \(oracle): \(text)" }
}

/// A response that a server has sent, for the oracle of caches.
struct ServedResponse: Sendable {
    let id: Int
    let url: String
    let method: HTTPRequest.Method
    let status: Int
    let headers: HTTPFields
    let request: HTTPFields
    let time: Int64
    /// The dates at which the response was sent, and confirmed by a 304.
    var dates: [Int64]
}

extension HTTPField.Name {
    // A fallback is never used: the texts are valid names.
    static let call = HTTPField.Name("X-Call") ?? .ifNoneMatch
    static let home = HTTPField.Name("X-Home") ?? .ifNoneMatch
    static let responseID = HTTPField.Name("X-Response") ?? .ifNoneMatch
    static let language = HTTPField.Name("X-Language") ?? .ifNoneMatch
}
