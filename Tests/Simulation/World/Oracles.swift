// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// What may never happen, whatever the order of events. Each oracle has a number and one place:
///
/// | number | never | where |
/// |---|---|---|
/// | 1 | a call that neither ends nor has a reason to wait | `Simulation` reports a hang |
/// | 2 | success with bytes that are not a whole version, a file before it is complete | ``wholeness(_:_:of:_:_:)`` |
/// | 3 | a second sending of a request that a server may have processed | ``repetition(_:_:)`` |
/// | 4 | a credential for another origin, a token that has ended, or a request without one | ``credentials(_:_:_:)`` |
/// | 5 | a stored response that RFC 9111 forbids | `CacheOracle` |
/// | 6 | a cancelled call that goes on, or ends by another error | ``cancellation(_:_:_:)`` |
/// | 7 | more attempts than the policy allows, or one too early | ``attempts(_:_:_:)`` |
/// | 8 | events in an order that is not documented | `EventGrammar` |
/// | 9 | anything left when the world has ended | the end of `Runner`, and `Simulation` |
/// | 10 | the same seed with two traces | `Exploration` |
enum Oracles {
    /// Judges a request that has reached a server.
    static func judge(arrival index: Int, _ ledger: Ledger, _ settings: Program.Settings) {
        let arrival = ledger.facts.arrivals[index]
        let earlier = ledger.arrivals(of: arrival.call).filter {
            $0.number < index && $0.sequence == arrival.sequence && !$0.isForgotten && arrival.call != 0
        }
        repetition(arrival, after: earlier, ledger)
        credentials(arrival, ledger, settings)
        pace(arrival, after: earlier, ledger, settings)
        if let last = earlier.last, last.outcome == .status(401), last.hasHead,
            let token = arrival.request.headers[.authorization],
            token == last.request.headers[.authorization], token.hasPrefix("Bearer "), !arrival.request.isConnection
        {
            ledger.violate(4, "call \(arrival.call) sends \(token) again after it was refused")
        }
        if let last = earlier.last, last.retryAfter ?? 0 >= 1, let head = last.headTime, head < arrival.time,
            !settings.hasInterceptors
        {
            ledger.cover("oracle.9.wait")
            if last.end ?? .max > head + 500_000_000 {
                ledger.violate(9, "call \(arrival.call) keeps its connection while it waits before a retry")
            }
        }
        if arrival.sequence == LaneInterceptor.second, [.post, .patch].contains(arrival.request.method),
            arrival.request.headers[.idempotencyKey] == nil
        {
            ledger.violate(3, "call \(arrival.call) sends \(arrival.request.method) twice at a time")
        }
        ranges(arrival, ledger, settings)
        sharing(arrival, ledger, settings)
        if let last = earlier.last, let end = last.outageEnd, arrival.time < end, settings.waitsForConnectivity,
            arrival.request.body.isReplayable, !arrival.request.isConnection
        {
            ledger.violate(7, "call \(arrival.call) is sent again while there is no route")
        }
        if let end = ledger.facts.calls[arrival.call]?.end, end < arrival.time, !settings.usesCache {
            ledger.violate(6, "call \(arrival.call) has ended and sends a request")
        }
        let begin = settings.isLate ? arrival.time - arrival.sendingTime : arrival.time
        if let cancelled = ledger.facts.calls[arrival.call]?.cancelled, cancelled < begin, !settings.usesCache {
            ledger.violate(6, "call \(arrival.call) was cancelled and sends a request")
        }
        // Attempts of a retry policy and connections of an event source begin anew.
        // An interceptor may have sent others in between.
        let latest = ledger.arrivals(of: arrival.call).filter { $0.number < index }.suffix(2).map(\.number)
        let refusals = earlier.suffix(2).filter { other in
            guard case .status(401) = other.outcome, latest.contains(other.number) else { return false }
            return other.request.url == arrival.request.url && other.hasHead
        }
        if refusals.count == 2, !arrival.request.isConnection {
            ledger.violate(7, "call \(arrival.call) is sent again after two refusals")
        }
        if let end = ledger.facts.sessionEnd, end < arrival.time {
            ledger.violate(6, "the session has ended and sends a request of call \(arrival.call)")
        }
    }

    /// Judges an exchange that begins, before its request has reached a server.
    static func judge(exchangeOf request: Request, _ ledger: Ledger, _ program: Program) {
        let (call, settings) = (request.call, program.settings)
        if let limit = settings.requestsPerSecond { rate(request, limit, ledger) }
        guard call > 0 else { return }
        // The exchanges of a cache may serve other calls, too.
        // A cancelled upload is removed from the server.
        // One that has passed the last check at the time of the cancellation is not sent.
        let isOver = ledger.facts.calls[call]?.cancelled.map { !settings.coincides || $0 < ledger.now } ?? false
        if !settings.usesCache, isOver,
            !(UploadOrigin.serves(request) && request.method == .delete)
        {
            ledger.violate(6, "call \(call) was cancelled and begins an exchange")
        }
        // A call sends one request at a time, except for those that validate a response in the background.
        let validates =
            settings.usesCache && Resource(request.url, seed: program.seed)?.isValidatedInBackground ?? false
        guard !settings.sendsConcurrently, !settings.mayValidateAgain, !validates else { return }
        let open = ledger.arrivals(of: call).first { other in
            other.isOpen && !(Resource(other.request.url, seed: program.seed)?.isValidatedInBackground ?? false)
        }
        if let open { ledger.violate(9, "call \(call) sends \(request) while \(open.request) is open") }
    }

    /// Judges a refresh that begins with the current token.
    static func judge(refreshOf token: String?, _ ledger: Ledger, _ settings: Program.Settings) {
        let (facts, date) = (ledger.facts, ledger.date)
        if facts.refreshesRunning > 1 { ledger.violate(7, "two refreshes run at a time") }
        // Calls are cancelled at times of their own, at which no other request can have begun to wait.
        if facts.refreshCancelled == ledger.now, facts.sessionClosed == nil, !settings.coincides {
            ledger.violate(7, "a refresh is cancelled although requests wait for it")
        }
        guard let token, let entry = facts.tokens[token], !facts.dateWasMoved else { return }
        ledger.cover("oracle.7.refresh")
        if entry.expires > date, !facts.refusedTokens.contains(token) {
            ledger.violate(7, "the token \(token) is refreshed, although it is valid and was not refused")
        }
    }

    /// Judges a call that has ended.
    static func judge(_ call: Program.Call, _ program: Program, _ ledger: Ledger) {
        cancellation(call, program, ledger)
        attempts(call, program, ledger)
        if let failure = ledger.facts.calls[call.number]?.failure, failure.contains("internalInconsistency") {
            ledger.violate(8, "call \(call.number) ends with an error that blames the library: \(failure)")
        }
        ends(call, program, ledger)
        limits(call, program, ledger)
        failures(of: call, program, ledger)
        if let closed = ledger.facts.sessionClosed, let ending = ledger.facts.calls[call.number], closed < ending.begin,
            ending.failure == nil
        {
            ledger.violate(6, "call \(call.number) begins after the end of its session and succeeds")
        }
    }

    /// Judges a session that has been shut down: nothing of it runs on.
    static func judgeEnd(_ ledger: Ledger) {
        ledger.cover("oracle.6.shutDown")
        for (number, call) in ledger.facts.calls.sorted(by: { $0.key < $1.key }) where call.end == nil {
            guard let end = ledger.facts.sessionEnd, call.begin < end, !call.isGroup else { continue }
            ledger.violate(6, "call \(number) goes on after the session was shut down")
        }
    }

    /// Judges a session that has cancelled its calls: they end as soon as what is under way permits.
    static func judgeInvalidation(_ ledger: Ledger) {
        ledger.cover("oracle.6.invalidated")
        for (number, call) in ledger.facts.calls.sorted(by: { $0.key < $1.key }) where call.end == nil {
            guard let closed = ledger.facts.sessionClosed, call.begin < closed, !call.isGroup else { continue }
            ledger.violate(6, "call \(number) goes on \(grace) ms after the session has cancelled it")
        }
    }

    /// The longest time for which a mock transport performs what it has begun, in milliseconds: its pauses go on when
    /// it is shut down, and a refresh of a token when no request waits for it.
    static let grace: Int64 = 2_000

    /// Whether an exchange may be that of a cache for a response that it has used already.
    private static func validatesInBackground(_ arrival: Ledger.Arrival, _ program: Program) -> Bool {
        program.settings.usesCache
            && Resource(arrival.request.url, seed: program.seed)?.isValidatedInBackground ?? false
    }

    // MARK: 2

    /// A successful response has the bytes of one whole version of the resource of its URL.
    static func wholeness(
        _ data: Data, _ head: ResponseHead, of call: Program.Call, _ program: Program, _ ledger: Ledger
    ) {
        guard call.method == .get || call.method == .head, head.status == .ok || head.status == .partialContent,
            let resource = Resource(head.url, seed: program.seed)
        else { return }
        ledger.cover("oracle.2")
        if call.method == .head {
            if !data.isEmpty { ledger.violate(2, "call \(call.number) has a body after HEAD") }
        } else if head.headers[.answered] != nil {
            ledger.cover("oracle.2.answered")
            if ProgramInterceptor.original(data, head) != ProgramInterceptor.answer {
                ledger.violate(2, "call \(call.number) has another body than the interceptor's")
            }
        } else if !resource.isWhole(ProgramInterceptor.original(data, head), at: ledger.date) {
            ledger.violate(2, "call \(call.number) has \(data.count) bytes that are no version of \(resource.url)")
        }
    }

    // MARK: 3

    /// A request whose method is not idempotent is sent again only if the server has not processed it.
    private static func repetition(_ arrival: Ledger.Arrival, after earlier: [Ledger.Arrival], _ ledger: Ledger) {
        // An interceptor may have sent others in between.
        let previous = ledger.arrivals(of: arrival.call).last { $0.number < arrival.number }
        if let last = earlier.last, last.number == previous?.number, case .status(let status) = last.outcome,
            last.hasHead, last.request.url != arrival.request.url, [301, 302, 303, 307, 308].contains(status)
        {
            let old = last.request.method
            let becomesGet = status == 303 && old != .head || (status == 301 || status == 302) && old == .post
            if arrival.request.method != (becomesGet ? .get : old) {
                ledger.violate(3, "call \(arrival.call) sends \(arrival.request.method) after \(status) to \(old)")
            }
        }
        guard [.post, .patch].contains(arrival.request.method), arrival.request.headers[.idempotencyKey] == nil else {
            return
        }
        for other in earlier where other.request.method == arrival.request.method {
            ledger.cover("oracle.3")
            switch other.outcome {
            case .status where !other.hasHead:
                ledger.violate(3, "call \(arrival.call) sends \(arrival.request.method) again without a response")
            case .refused, .noRoute, .status(401), .status(421): continue
            case .status(300..<400) where other.request.url != arrival.request.url: continue
            case .lost, .silent, .status:
                ledger.violate(3, "call \(arrival.call) sends \(arrival.request.method) again after \(other.outcome)")
            }
        }
    }

    // MARK: 4

    /// Credentials reach only their origins, and requests to the origin of the tokens have one that is valid.
    private static func credentials(_ arrival: Ledger.Arrival, _ ledger: Ledger, _ settings: Program.Settings) {
        let request = arrival.request
        let host = request.url.host() ?? ""
        let authorization = request.headers[.authorization]
        if let cookie = request.headers[.cookie], request.home != host {
            ledger.violate(4, "the cookie \(cookie) of call \(arrival.call) reaches \(host)")
        }
        if let authorization {
            ledger.cover("oracle.4")
            let isOwn =
                host == "a.test"
                ? authorization.hasPrefix("Bearer ") : host == "b.test" && authorization == Origins.basic
            if !isOwn { ledger.violate(4, "\(authorization) of call \(arrival.call) reaches \(host)") }
        }
        guard host == "a.test", settings.usesTokens else { return }
        guard let token = authorization?.dropFirst(7) else {
            return ledger.violate(4, "call \(arrival.call) sends no token")
        }
        let facts = ledger.facts
        guard let entry = facts.tokens[String(token)] else {
            return ledger.violate(4, "call \(arrival.call) sends the unknown token \(token)")
        }
        // An interceptor may take its time after the token was added.
        guard settings.attemptInterceptors.isEmpty, !facts.dateWasMoved else { return }
        let begin = (time: arrival.time - arrival.sendingTime, date: arrival.date - arrival.sendingTime / 1_000_000)
        if entry.expires <= begin.date { ledger.violate(4, "call \(arrival.call) sends the expired token \(token)") }
        if let removed = facts.tokensRemoved, entry.issued < removed, removed < begin.time {
            ledger.violate(4, "call \(arrival.call) sends the token \(token), which was removed")
        }
    }

    // MARK: 6

    /// A cancelled call ends at once, by `CancellationError`.
    private static func cancellation(_ call: Program.Call, _ program: Program, _ ledger: Ledger) {
        guard let ending = ledger.facts.calls[call.number], let end = ending.end else { return }
        guard let cancelled = ending.cancelled else {
            if ending.isCancellation, ledger.facts.sessionClosed == nil {
                ledger.violate(6, "call \(call.number) ends with CancellationError, but was not cancelled")
            }
            return
        }
        ledger.cover("oracle.6")
        // The removal of an upload has five seconds.
        let grace = call.kind == .resumable ? 5_000 : program.settings.isLate ? LateTransport.delay : 0
        if end > cancelled + Int64(grace) * 1_000_000 {
            ledger.violate(6, "call \(call.number) ends \((end - cancelled) / 1_000_000) ms after its cancellation")
        }
        // Unless calls are cancelled at times at which nothing else happens, another end may have come first.
        // So may a whole response that a transport had before it noticed the cancellation.
        let mayEndOtherwise = program.settings.coincides && end == cancelled || program.settings.isLate
        if !ending.isCancellation, !mayEndOtherwise {
            ledger.violate(6, "call \(call.number) was cancelled and ends with \(ending.failure ?? "success")")
        }
        // A validation in the background goes on.
        let open = ledger.facts.arrivals.filter { arrival in
            arrival.call % 1_000 == call.number && arrival.isOpen && !validatesInBackground(arrival, program)
        }
        if !open.isEmpty { ledger.violate(6, "call \(call.number) was cancelled and leaves \(open.count) exchanges") }
    }

    // MARK: 7

    /// A call without redirects and a cache makes at most as many attempts as its policy allows.
    private static func attempts(_ call: Program.Call, _ program: Program, _ ledger: Ledger) {
        guard !program.settings.usesCache, [.data, .streamed, .task, .upload].contains(call.kind) else { return }
        let limit = call.retryLimit ?? program.settings.retryLimit
        let url = Resource(call.host, call.resource, seed: program.seed).url
        let first = ledger.arrivals(of: call.number).filter { arrival in
            switch arrival.outcome {
            case .status(401): return false
            case .noRoute where program.settings.waitsForConnectivity: return false
            default: return arrival.request.url.absoluteString == url && !arrival.isForgotten
            }
        }
        if first.count > 1 { ledger.cover("oracle.7") }
        for (sequence, attempts) in Dictionary(grouping: first, by: \.sequence) where attempts.count > limit + 1 {
            ledger.violate(
                7, "call \(call.number)\(sequence) makes \(attempts.count) attempts with a limit of \(limit) retries")
        }
    }

    /// A call that could have been repeated, redirected or authorized does not end before that.
    private static func ends(_ call: Program.Call, _ program: Program, _ ledger: Ledger) {
        let facts = ledger.facts
        guard let ending = facts.calls[call.number], ending.cancelled == nil, facts.sessionClosed == nil else { return }
        let arrivals = ledger.arrivals(of: call.number)
        switch ending.status {
        case 401?:
            let refusals = arrivals.filter { if case .status(401) = $0.outcome { true } else { false } }
            let isToken = refusals.last?.request.url.host() == "a.test"
            if !isToken || refusals.count < 2, !program.settings.hasInterceptors {
                ledger.violate(4, "call \(call.number) ends with 401 after \(refusals.count) refusals")
            }
        case (300..<400)? where ending.status != 304:
            ledger.violate(7, "call \(call.number) ends with the redirect \(ending.status ?? 0)")
        default: break
        }
        // An interceptor may have sent it before, and a server seen it.
        let mayBeRepeated =
            !program.settings.hasInterceptors || ![.post, .patch].contains(call.method) || call.hasIdempotencyKey
        if ending.isRouteFailure, mayBeRepeated, let outageEnd = arrivals.last?.outageEnd, let end = ending.end,
            end < outageEnd,
            program.settings.waitsForConnectivity, program.settings.connectivityTimeout == nil, call.timeout == nil,
            arrivals.last?.request.body.isReplayable == true
        {
            ledger.violate(7, "call \(call.number) fails for lack of a route, although it waits for one")
        }
        // Without a deadline and a budget, a policy is used up before a call fails.
        let limit = call.retryLimit ?? program.settings.retryLimit
        guard !program.settings.hasRetryBudget, !program.settings.usesCache, call.timeout == nil,
            call.kind == .data || call.kind == .upload && ![.stream, .task].contains(call.body), limit > 0,
            !program.settings.hasInterceptors,
            ![.post, .patch].contains(call.method) || call.hasIdempotencyKey
        else { return }
        let isRetriable =
            ending.isConnectionFailure && program.family != .failures
            || ending.status.map { [408, 425, 429, 500, 502, 503, 504].contains($0) } ?? false
                && arrivals.last?.retryAfter ?? 0 <= 60
        guard isRetriable, let earlier = ending.earlierAttempts else { return }
        ledger.cover("oracle.7.exhausted")
        if earlier < limit {
            ledger.violate(7, "call \(call.number) fails after \(earlier) of \(limit) retries")
        }
    }

    /// A call ends within its time limit, unless the program suspends it or a token is refreshed.
    private static func limits(_ call: Program.Call, _ program: Program, _ ledger: Ledger) {
        guard let timeout = call.timeout, [.data, .streamed, .upload, .task].contains(call.kind),
            call.suspendAfter == nil, let ending = ledger.facts.calls[call.number], let end = ending.end
        else { return }
        ledger.cover("oracle.7.timeout")
        let settings = program.settings
        // A refresh, and the request of an interceptor, have no limit of this call.
        let slack: Int64 = settings.usesTokens ? 1_000 : 1
        guard !settings.interceptors.contains(.session), !settings.attemptInterceptors.contains(.session),
            settings.maximumConcurrentTasks == nil
        else { return }
        let milliseconds = (end - ending.begin) / 1_000_000
        if milliseconds > Int64(timeout) + slack {
            ledger.violate(7, "call \(call.number) ends after \(milliseconds) ms with a limit of \(timeout) ms")
        }
    }

    /// No more exchanges with a host begin in any time than the rate permits, after a burst of one second's.
    private static func rate(_ request: Request, _ limit: Int, _ ledger: Ledger) {
        let now = ledger.now
        let times = ledger.update { state in
            state.sendingTimes[request.url.host() ?? "", default: []].append(now)
            return state.sendingTimes[request.url.host() ?? ""] ?? []
        }
        if times.count > limit { ledger.cover("oracle.7.rate") }
        for (index, time) in times.enumerated() {
            let (count, seconds) = (times.count - index, Double(now - time) / 1e9)
            if Double(count) > Double(limit) * (1 + seconds) + 1 {
                return ledger.violate(7, "\(count) requests are sent in \(seconds) s, with a limit of \(limit) in 1 s")
            }
        }
    }

    /// A range is requested only of the version that the client has a part of (RFC 9110 §13.1.5), unless it knows the
    /// digests of pieces.
    private static func ranges(_ arrival: Ledger.Arrival, _ ledger: Ledger, _ settings: Program.Settings) {
        guard settings.pieceLength == 0, arrival.request.headers[.range] != nil else { return }
        ledger.cover("oracle.2.range")
        guard let condition = arrival.request.headers[.ifRange] else {
            return ledger.violate(2, "call \(arrival.call) requests a range of any version")
        }
        if condition.hasPrefix("W/") { ledger.violate(2, "call \(arrival.call) requests a range with a weak tag") }
    }

    /// A request waits for an identical one that is in flight, if the session shares transfers.
    private static func sharing(_ arrival: Ledger.Arrival, _ ledger: Ledger, _ settings: Program.Settings) {
        let facts = ledger.facts
        func mayShare(_ other: Ledger.Arrival) -> Bool {
            facts.sharingCalls[other.call] != nil && other.request.method == .get && other.outcome != .noRoute
                && [HTTPField.Name.range, .ifNoneMatch, .ifModifiedSince].allSatisfy {
                    other.request.headers[$0] == nil
                }
        }
        guard settings.coalescesRequests, !settings.hasInterceptors,
            mayShare(arrival)
        else { return }
        func isIdentical(_ other: Ledger.Arrival) -> Bool {
            other.number < arrival.number && other.request.url == arrival.request.url
                && facts.sharingCalls[other.call] == facts.sharingCalls[arrival.call]
                && other.request.headers == arrival.request.headers
        }
        let leader = facts.arrivals.first { other in
            guard isIdentical(other), other.isOpen, !other.hasHead, other.call != arrival.call, mayShare(other) else {
                return false
            }
            // One that has waited for another request in vain is not waited for.
            let begin = facts.calls[other.call]?.begin ?? 0
            return !facts.arrivals.contains { earlier in
                isIdentical(earlier) && earlier.number < other.number && earlier.call != other.call
                    && earlier.end ?? .max >= begin
            }
        }
        if facts.arrivals.contains(where: {
            $0.call != arrival.call && $0.isOpen && $0.request.url == arrival.request.url
        }) {
            ledger.cover("oracle.7.sharing")
        }
        if let leader {
            ledger.violate(
                7, "call \(arrival.call) is sent although the same request of call \(leader.call) is in flight")
        }
    }

    /// A task does not wait for its place while fewer run than the session permits.
    static func queue(_ session: SessionManager, _ limit: Int, _ ledger: Ledger) {
        let tasks = session.tasks.filter { $0.core != nil }
        let states = tasks.map(\.status.state)
        let running = states.count { $0 == .running || $0 == .cancelling }
        let waiting = states.count { $0 == .waiting }
        if waiting > 0 { ledger.cover("oracle.7.queue") }
        if waiting > 0, running < limit {
            ledger.violate(7, "\(waiting) tasks wait although \(running) run, with a limit of \(limit)")
        }
        // An upload that is cancelled while it is suspended has no place, and removes itself from the server.
        let removed = tasks.filter { $0.kind == .upload && $0.status.state == .cancelling }.map(\.id)
        guard running - removed.count > limit else {
            // Only who is resumed later exceeds the limit.
            let waiting = tasks.filter { $0.status.state == .waiting }.map(\.id)
            return ledger.update { $0.resumedTasks.formIntersection(waiting) }
        }
        let resumed = tasks.count { task in
            ledger.facts.resumedTasks.contains(task.id) && [.running, .cancelling].contains(task.status.state)
                && !removed.contains(task.id)
        }
        if running - removed.count - resumed > limit {
            ledger.violate(7, "\(running) tasks run, with a limit of \(limit)")
        }
    }

    /// No more tasks run than the session permits.
    static func concurrency(of call: Int, _ program: Program, _ ledger: Ledger) {
        guard let limit = program.settings.maximumConcurrentTasks else { return }
        let counted = program.actions.compactMap { action -> Int? in
            guard case .call(let call) = action, call.kind == .task || call.kind == .download else { return nil }
            // One that is suspended is not counted.
            return call.suspendAfter == nil ? call.number : nil
        }
        let running = Set(
            ledger.facts.arrivals.filter { arrival in
                arrival.isOpen && counted.contains(arrival.call) && !validatesInBackground(arrival, program)
            }.map(\.call))
        ledger.cover("oracle.7.concurrency")
        if running.count > limit { ledger.violate(7, "\(running.count) tasks run, with a limit of \(limit)") }
    }

    /// A request is not repeated before the time that `Retry-After` asks for.
    private static func pace(
        _ arrival: Ledger.Arrival, after earlier: [Ledger.Arrival], _ ledger: Ledger, _ settings: Program.Settings
    ) {
        guard let last = earlier.last, let seconds = last.retryAfter, last.hasHead, !settings.mayValidateAgain,
            last.request.url == arrival.request.url,
            !ledger.facts.dateWasMoved
        else { return }
        ledger.cover("oracle.7.retryAfter")
        // An event source without a policy of its own has no limit.
        let isSource = arrival.request.headers[.accept] == "text/event-stream"
        // A date may be near when the response of the second of two exchanges arrives.
        if seconds > 60, !settings.sendsConcurrently, !isSource {
            ledger.violate(7, "call \(arrival.call) is repeated in spite of Retry-After: \(seconds)")
        }
        // A date has whole seconds. Other segments of a download may be on their way.
        if arrival.time - last.time < Int64(seconds - 1) * 1_000_000_000, settings.segments == 1 {
            ledger.violate(7, "call \(arrival.call) is repeated earlier than after \(seconds) s")
        }
    }
}

/// Oracle 8: the documented order of the events of a call's exchanges.
final class EventGrammar: ExchangeEventSink {
    private let ledger: Ledger
    private let call: Int
    private let state = Lock(State.idle)

    private enum State: Sendable {
        case idle, started, head(TransferProgress?)
    }

    init(_ call: Int, _ ledger: Ledger) {
        self.call = call
        self.ledger = ledger
    }

    /// Judges the events of a task that has ended.
    static func judge(_ task: AnySessionTask, of call: Int, _ settings: Program.Settings, _ ledger: Ledger) {
        let recorded = Lock([TaskEvent]())
        // All events so far are passed to a new observer at once.
        task.core?.observe { event in recorded.withLock { $0.append(event) } }
        let events = recorded.withLock(\.self)
        guard !events.isEmpty, !settings.sendsConcurrently else { return }
        ledger.cover("oracle.8.task")
        var (hasRequest, last): (Bool, TransferProgress?) = (false, nil)
        for (index, event) in events.enumerated() {
            switch event {
            case .exchange(_, .started): (hasRequest, last) = (true, nil)
            case .response where !hasRequest && !settings.usesCache && !settings.answersItself:
                ledger.violate(8, "task \(call) has a response before a request")
            case .downloadProgress(let progress):
                if let last, progress.completedBytes < last.completedBytes {
                    ledger.violate(8, "the progress of task \(call) falls")
                }
                if let total = progress.totalBytes, progress.completedBytes > total {
                    ledger.violate(8, "the progress of task \(call) exceeds its total")
                }
                last = progress
            case .ended where index < events.count - 1: ledger.violate(8, "task \(call) has events after its end")
            default: break
            }
        }
        if case .created? = events.first {} else { ledger.violate(8, "task \(call) does not begin with created") }
        judge(figuresOf: task, of: call, ledger)
    }

    /// Judges the figures of a task that has ended: a call whose last exchange had no connection has no response.
    static func judge(figuresOf task: AnySessionTask, of call: Int, _ ledger: Ledger) {
        task.core?.observe { event in
            guard case .ended(.failed(let error as SessionError), let figures) = event,
                case .cannotConnect? = error.reason
            else { return }
            ledger.cover("oracle.8.figures")
            if let status = figures.statusCode {
                ledger.violate(8, "task \(call) ends without a connection and has the status \(status)")
            }
        }
    }

    func receive(_ event: ExchangeEvent) {
        if ledger.facts.calls[call]?.end != nil { ledger.violate(8, "call \(call) has events after its end") }
        let problem: String? = state.withLock { state in
            switch (state, event) {
            case (.idle, .started): state = .started
            // A session answers from its cache without an exchange.
            case (.started, .started): state = .started
            case (.started, .informational), (.started, .uploadProgress), (.head, .uploadProgress): break
            case (.started, .head): state = .head(nil)
            case (.head(let last), .downloadProgress(let progress)):
                if let last, progress.completedBytes < last.completedBytes { return "the progress falls" }
                if let total = progress.totalBytes, progress.completedBytes > total { return "more than the total" }
                state = .head(progress)
            case (.started, .finished), (.head, .finished): state = .idle
            default: return "\(event) comes in the state \(state)"
            }
            return nil
        }
        if let problem { ledger.violate(8, "events of call \(call): \(problem.prefix(120))") }
        ledger.cover("oracle.8")
    }
}
