// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
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
        enum Outcome: Equatable, Sendable {
            /// The request did not reach the server, or no answer has been given.
            case refused, lost, silent, noRoute
            case status(Int)
        }
        let number: Int
        var call: Int
        /// The repetition by an interceptor to which the request belongs.
        let sequence: String
        let request: Request
        let time: Int64
        let date: Int64
        /// How long before it its exchange began, in nanoseconds.
        let sendingTime: Int64
        var outcome = Outcome.silent
        var processed = false
        /// Whether a 304 is about the response that the request names.
        var isConfirmation = false
        var responseID: Int?
        var retryAfter: Int?
        var isOpen = true
        var end: Int64?
        /// Whether the head of the response has reached the client.
        var hasHead = false
        /// Whether a part of its body has.
        var hasBody = false
        /// Whether the program has sent the request again, by resuming a download or in an interceptor: rules about
        /// what the library repeats begin anew.
        var isForgotten = false
        /// The end of the outage because of which the request was not sent.
        var outageEnd: Int64?
        /// How the exchange fails, and when its head reached the client.
        var failure: Failure?
        var headTime: Int64?
        /// How the server ends the WebSocket connection.
        var socketEnding: SocketEnding?
    }

    /// The facts of one call.
    struct Ending: Sendable {
        var begin: Int64 = 0
        /// Whether it is a group of tasks, which the program controls after pauses of its own.
        var isGroup = false
        var beginDate: Int64 = 0
        var cancelled: Int64?
        var end: Int64?
        var failure: String?
        var isCancellation = false
        /// The final status, and the number of attempts before the last one.
        var status: Int?
        var earlierAttempts: Int?
        var isConnectionFailure = false
        var reason: TransportError.Reason?
        var isRouteFailure = false
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
        /// When a refresh last ended by its cancellation, without a delay.
        var refreshCancelled: Int64?
        /// How many requests interceptors have made within each call.
        var nestedCalls: [Int: Int] = [:]
        /// When the open exchange of a call began, by its sequence.
        var begins: [Int: [String: Int64]] = [:]
        /// When exchanges with each host began.
        var sendingTimes: [String: [Int64]] = [:]
        var responses: [Int: ServedResponse] = [:]
        /// The bodies of the requests of calls, and the calls and sequences whose servers answer before they have
        /// received them.
        var bodies: [Int: Data] = [:]
        var answeredEarly: Set<String> = []
        /// How many readings of the body of a call are under way.
        var bodyPasses: [Int: Int] = [:]
        /// How many chunks of their bodies were read since tasks that are suspended were.
        var suspendedChunks: [Int: Int] = [:]
        /// The tasks that had places before they were suspended, and may have taken them again regardless of the limit when
        /// they were resumed, or may do so when they begin an exchange.
        var resumedTasks: Set<UInt64> = []
        /// The resumable uploads of calls, and those on the server by their paths.
        var plans: [Int: UploadOrigin.Plan] = [:]
        var uploads: [String: UploadOrigin.Stored] = [:]
        /// When the session stopped accepting requests, and when all of its requests had ended.
        var sessionClosed: Int64?
        var sessionEnd: Int64?
        /// The calls that share transfers, if their session does, and that session.
        var sharingCalls: [Int: Int] = [:]
        var dateWasMoved = false
        /// Whether someone has removed files of the program.
        var filesVanished = false
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
        let (call, sequence) = (request.call, request.sequence)
        return state.withLock { state in
            state.arrivals.append(
                Arrival(
                    number: state.arrivals.count, call: call, sequence: sequence, request: request, time: now,
                    date: date, sendingTime: now - (state.begins[call]?[sequence] ?? now)))
            return state.arrivals.count - 1
        }
    }

    /// Records what a client sees of an exchange.
    func observe(_ request: Request, _ event: SimulatedTransport.Step) {
        let (call, sequence, now) = (request.call, request.sequence, now)
        update { state in
            if case .begin = event { return state.begins[call, default: [:]][sequence] = now }
            guard
                let index = state.arrivals.lastIndex(where: {
                    $0.call == call && $0.sequence == sequence && $0.isOpen
                })
            else { return }
            switch event {
            case .begin: break
            case .head: (state.arrivals[index].hasHead, state.arrivals[index].headTime) = (true, now)
            case .body: state.arrivals[index].hasBody = true
            case .end: (state.arrivals[index].isOpen, state.arrivals[index].end) = (false, now)
            }
        }
    }

    /// Records that the program sends again what it has sent for a call, or within one of its repetitions.
    func forget(call: Int, within sequence: String = "") {
        update { state in
            for index in state.arrivals.indices where state.arrivals[index].call == call {
                guard state.arrivals[index].sequence.hasPrefix(sequence) else { continue }
                state.arrivals[index].isForgotten = true
            }
        }
    }

    /// Returns the number of another request within a call, whose last three digits are those of the call.
    func nestedCall(of call: Int) -> Int {
        update { state in
            state.nestedCalls[call, default: 0] += 1
            return 1_000 * (state.nestedCalls[call] ?? 0) + call
        }
    }

    /// Returns the body that a request must have; `nil` if it has none.
    func body(of request: Request) -> Data? {
        if case .none = request.body.kind { return nil }
        return facts.bodies[request.call]
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
    /// The cache partition of the session that received it.
    let partition: String
    let method: HTTPRequest.Method
    let status: Int
    let headers: HTTPFields
    let request: HTTPFields
    let time: Int64
    /// The dates at which the response was sent, and confirmed by a 304.
    var dates: [Int64]
}

/// The facts about a request that servers do not see, so that requests of several calls may be identical.
enum RequestFacts: RequestAttribute {
    /// The facts about the requests of the current task, which must have no attributes to be shared.
    @TaskLocal static var current: Facts?

    struct Facts: Sendable {
        var call = 0
        var sequence = ""
        var home: String?
        var partition = ""
        var messageCount = 0
    }
    static var defaultValue: Facts { Facts() }
}

/// Adds the facts about requests that may be shared, within the interceptor that shares them.
struct FactsInterceptor: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        guard request.call == 0, let facts = RequestFacts.current else { return try await next(request) }
        var request = request
        request[RequestFacts.self] = facts
        return try await next(request)
    }
}

extension Request {
    /// Sends a request that has no attributes, and may thus be shared.
    func sharing<Value>(_ send: (Request) async throws -> Value) async rethrows -> Value {
        var request = Request(method: method, url: url)
        (request.headers, request.timeout) = (headers, timeout)
        return try await RequestFacts.$current.withValue(self[RequestFacts.self]) { [request] in try await send(request)
        }
    }

    /// Whether the request is one of several connections of an event source or a WebSocket, of which each begins anew.
    var isConnection: Bool { webSocketOptions != nil || headers[.accept] == "text/event-stream" }

    /// The number of the call; 0 for a download of an earlier session.
    var call: Int {
        get { self[RequestFacts.self].call }
        set { self[RequestFacts.self].call = newValue }
    }

    /// The repetition by an interceptor to which the request belongs.
    var sequence: String {
        get { self[RequestFacts.self].sequence }
        set { self[RequestFacts.self].sequence = newValue }
    }

    /// The host for which the program has added a cookie.
    var home: String? {
        get { self[RequestFacts.self].home }
        set { self[RequestFacts.self].home = newValue }
    }

    /// The cache partition of the session.
    var partition: String {
        get { self[RequestFacts.self].partition }
        set { self[RequestFacts.self].partition = newValue }
    }

    /// The number of messages of a WebSocket in each direction.
    var messageCount: Int {
        get { self[RequestFacts.self].messageCount }
        set { self[RequestFacts.self].messageCount = newValue }
    }
}

extension HTTPField.Name {
    // A fallback is never used: the texts are valid names.
    static let responseID = HTTPField.Name("X-Response") ?? .ifNoneMatch
    static let answered = HTTPField.Name("X-Answered") ?? .ifNoneMatch
    static let transformed = HTTPField.Name("X-Transformed") ?? .ifNoneMatch
    static let errorPage = HTTPField.Name("X-Error-Page") ?? .ifNoneMatch
    static let language = HTTPField.Name("X-Language") ?? .ifNoneMatch
}
