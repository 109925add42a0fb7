// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
public import FoundationEssentials
import HTTPTypes
import Synchronization

/// A source of bearer tokens for requests to certain origins, which refreshes the token once for all requests that need
/// it.
///
/// ```swift
/// let authenticator = Authenticator(for: [url], token: stored) { old in
///     try await logIn.post("token", parameters: ["refresh": grant], as: .decodable(TokenResponse.self)).value.token
/// }
/// let api = SessionManager(baseURL: url) { $0.authentication.authenticators = [authenticator] }
/// ```
///
/// | situation | behavior |
/// |---|---|
/// | there is no token | it is obtained first, except for a request that accepts only a stored response |
/// | the token has expired, or expires within `leeway` | the token is refreshed before the request is sent; not if the response comes from the cache |
/// | a request is answered with 401 | the token is refreshed, unless that has happened since the request was sent, and the request is sent again, once |
/// | the same, with a body that is not replayable | the token is refreshed, and the request fails with ``SessionError/AuthenticationFailure/bodyNotReplayable`` |
/// | the request or the session has an `Authorization` field, or a signature applies | no token is sent; see ``AuthenticationPolicy`` |
/// | several requests need a refresh | one refresh serves all; if it fails, all of them throw its error, and the next request starts a new one |
/// | the token is refreshed, or expires, while the request waits for its turn, such as by ``RequestRateLimit``, or for a route | the new token is sent |
/// | the program sets or removes the token meanwhile | the request is authorized again before it is sent |
/// | a refresh ahead of expiry fails | the current token is sent, if it has not expired |
/// | the token was refreshed `refreshLimit` times within `refreshPeriod` | ``SessionError/AuthenticationFailure/excessiveRefreshes(limit:)`` |
/// | the refresh closure itself makes requests, before it returns | they are sent without this token and do not wait for the refresh |
/// | all waiting requests are cancelled | the refresh is cancelled, and does not count unless it succeeds |
public actor Authenticator {
    /// The time before expiry at which a token is refreshed; 30 s by default.
    ///
    /// It counts at most as a tenth of the time between setting the token and its expiry, so that short-lived tokens
    /// are used, too: a token that lives for 60 s is refreshed 6 s before its expiry.
    package nonisolated let leeway: Duration
    /// The maximum number of refreshes within `refreshPeriod`; 5 by default.
    package nonisolated let refreshLimit: Int
    /// The period over which refreshes are counted; 30 s by default.
    package nonisolated let refreshPeriod: Duration

    nonisolated let origins: Set<Origin>
    private let refreshToken: @Sendable (Token?) async throws -> Token
    private var now: @Sendable () -> Date
    private var uptime: Stopwatch
    /// Whether the clock of a session may replace the system's: no session has used the authenticator yet.
    private var isClockOpen: Bool

    private var current: Ticket?
    /// The number of times that the program has set the token, with which the user may change.
    private(set) var generation = 0
    /// The version of the most recent token, even if that was removed.
    private var version = 0
    private var refresh: Refresh?
    /// The start times of the refreshes within `refreshPeriod` that have ended, other than by being abandoned.
    private var refreshTimes: [Duration] = []

    /// Creates an authenticator for the origins of some URLs.
    ///
    /// - Parameters:
    ///   - urls: URLs whose origins (scheme, host and port) receive the token; no other origin does, except over https
    ///     in place of http if the host is known to require that. With none, the token is never sent.
    ///   - token: The initial token; `nil`, the default, refreshes before the first request.
    ///   - leeway: The time before expiry at which a token is refreshed; 30 s by default. It counts at most as a tenth
    ///     of the time between setting the token and its expiry. With zero, a token is sent until it expires; with a
    ///     negative one, for that time after its expiry.
    ///   - refreshLimit: The maximum number of refreshes within `refreshPeriod`; 5 by default. Further ones fail with
    ///     ``SessionError/AuthenticationFailure/excessiveRefreshes(limit:)``, and with 0 or less, all do.
    ///   - refreshPeriod: The period over which refreshes, including failed ones, are counted; 30 s by default. With
    ///     zero or less, their number is not limited, unless `refreshLimit` is 0 or less.
    ///   - refresh: Returns a new token. Receives the current one, or `nil`. It runs in a task of its own, which is
    ///     cancelled when no request waits for it any more, and on the executor of the authenticator, so it must not
    ///     block. All waiting requests throw the error that it throws, except those that can still send the current
    ///     token.
    public init(
        for urls: [URL], token: Token? = nil, leeway: Duration = .seconds(30), refreshLimit: Int = 5,
        refreshPeriod: Duration = .seconds(30), refresh: @escaping @Sendable (Token?) async throws -> Token
    ) {
        self.init(
            for: urls, token: token, leeway: leeway, refreshLimit: refreshLimit, refreshPeriod: refreshPeriod,
            now: Self.systemDate, clock: ContinuousClock(), isClockOpen: true, refresh: refresh)
    }

    package init(
        for urls: [URL], token: Token? = nil, leeway: Duration = .seconds(30), refreshLimit: Int = 5,
        refreshPeriod: Duration = .seconds(30), now: @escaping @Sendable () -> Date, clock: any Clock<Duration>,
        isClockOpen: Bool = false, refresh: @escaping @Sendable (Token?) async throws -> Token
    ) {
        origins = Set(urls.map { Origin($0) })
        self.leeway = leeway
        self.refreshLimit = refreshLimit
        self.refreshPeriod = refreshPeriod.bounded
        self.now = now
        uptime = Stopwatch(clock)
        self.isClockOpen = isClockOpen
        refreshToken = refresh
        current = token.map { Ticket(token: $0, version: 0, date: now(), lineage: Secret($0.value)) }
    }

    /// The current token, possibly expired; `nil` before the first refresh of an authenticator created without one, and
    /// after its removal. Reading it does not refresh it.
    public var token: Token? { current?.token }

    /// Sets the token, for example after another user has logged in. The result of a refresh that is already running is
    /// discarded: it is cancelled, and the requests that wait for it are sent with this token at once. If the token is
    /// `nil`, has expired, or expires within the leeway, they wait for its end instead, and for another refresh.
    ///
    /// - Parameter token: The token; `nil` removes the current one, so that the next request refreshes it.
    public func setToken(_ token: Token?) {
        replaceToken(by: token)
        generation += 1
        guard !isDue else { return }
        resumeWaiters(.success(()))
        // A refresh may set the token itself, and then has something left to do.
        if !isBypassed { refresh?.abandon() }
    }

    // MARK: For the pipeline

    /// A token and its version, which increases with each replacement.
    struct Ticket: Sendable {
        let token: Token
        let version: Int
        /// The date at which the token was set.
        let date: Date
        /// The token that was set by the program, or obtained without one, and of which this is a refreshed one.
        let lineage: Secret<String>
        /// The value of `Authorization`, as `HTTPFields` contains it.
        var field: String { secretField.value }
        private let secretField: Secret<String>

        init(token: Token, version: Int, date: Date, lineage: Secret<String>) {
            (self.token, self.version, self.date, self.lineage) = (token, version, date, lineage)
            secretField = Secret(HTTPField(name: .authorization, value: "Bearer \(token.value)").value)
        }
    }

    private static let systemDate: @Sendable () -> Date = {
        Date(timeIntervalSince1970: Double(SystemDate.millisecondsSince1970) / 1_000)
    }

    /// Measures time on the clock of a session from now on, if that is the first one to use the authenticator.
    func follow(_ clock: any Clock<Duration>, _ date: @escaping @Sendable () -> Date) {
        guard isClockOpen else { return }
        isClockOpen = false
        guard !(clock is ContinuousClock) else { return }
        now = date
        uptime = Stopwatch(clock)
        refreshTimes = []
        current = current.map { Ticket(token: $0.token, version: $0.version, date: date(), lineage: $0.lineage) }
    }

    /// Returns the token to send, or `nil` if a refresh is due.
    func ticketToSend() -> Ticket? {
        isDue ? nil : current
    }

    /// Returns the current token, possibly expired, and whether a refresh is due; `nil` if there is none.
    func ticketToCarry() -> (ticket: Ticket, isDue: Bool)? {
        current.map { ($0, isDue) }
    }

    /// Returns what is sent in place of a token that a request has had for some time.
    ///
    /// - Parameter refreshes: Whether a token is refreshed ahead of its expiry.
    func use(of ticket: Ticket, refreshingAhead refreshes: Bool = false) -> TokenUse {
        TokenUse(of: ticket, current: current, isDue: isDue && (refreshes || hasExpired))
    }

    /// Waits until there is a token newer than the refused one, and returns it.
    func renew(after refused: Ticket? = nil) async throws -> Ticket {
        while true {
            // A token that was removed meanwhile has another version, too, but is no replacement.
            // One that was refreshed for another request is used, unless it has expired since.
            if refused?.version != version, let current, !isDue { return current }
            do {
                try await awaitRefresh()
            } catch {
                // A token that has not expired is still usable, unless a server has refused it.
                guard refused?.version != version, !Task.isCancelled, let current,
                    !current.token.isExpired(at: now())
                else { throw error }
                return current
            }
            // The token may have been removed since the refresh.
            if let current { return current }
        }
    }

    private var isDue: Bool {
        guard let current else { return true }
        guard let expires = current.token.expires else { return false }
        return expires <= now() + min(leeway / .seconds(1), max(0, expires.timeIntervalSince(current.date) / 10))
    }

    /// Whether the current token has expired since it arrived. One that arrives expired, perhaps only by this clock, is
    /// sent with the request for which it was refreshed.
    private var hasExpired: Bool {
        current.map { $0.token.isExpired(at: now()) && !$0.token.isExpired(at: $0.date) } ?? false
    }

    private func replaceToken(by token: Token?, lineage: Secret<String>? = nil) {
        version += 1
        current = token.map { Ticket(token: $0, version: version, date: now(), lineage: lineage ?? Secret($0.value)) }
    }

    // MARK: One refresh for all

    /// A running refresh.
    private struct Refresh {
        let start: Duration
        var task: Task<Void, Never>?
        /// Whether it was cancelled because no request was waiting any more, or the program has set the token.
        private(set) var isAbandoned = false

        mutating func abandon() {
            isAbandoned = true
            task?.cancel()
        }
    }

    /// The requests that wait for the running refresh.
    private var waiters = Waiters<CheckedContinuation<Void, any Error>>()

    /// The number of requests that wait for the running refresh.
    package var waitingCount: Int { waiters.count }

    private func awaitRefresh() async throws {
        let ticket = waiters.makeTicket()
        guard let waiting = WaitGraph.begin(for: self) else {
            throw TransportError(
                .internalInconsistency(
                    "The refreshes of two authenticators need a token of each other, or one waits for a request that needs its token."
                ))
        }
        defer { waiting.end() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                do {
                    if refresh == nil { try beginRefresh() }
                } catch {
                    return continuation.resume(throwing: error)
                }
                waiters.add(continuation, ticket: ticket)
            }
        } onCancel: {
            // The task ends after one call. The continuation is already stored when it runs: nothing suspends before
            // that.
            Task { await self.stopWaiting(ticket) }
        }
    }

    private func beginRefresh() throws {
        refreshTimes.removeAll { $0 <= uptime.elapsed - refreshPeriod }
        guard refreshTimes.count < refreshLimit else {
            throw SessionError.authentication(.excessiveRefreshes(limit: refreshLimit))
        }
        refresh = Refresh(start: uptime.elapsed)
        // The task ends with the refresh, and is cancelled with the last waiting request.
        refresh?.task = Task { [refreshToken, token = current?.token, generation] in
            let result = await WaitGraph.leading(self) {
                do {
                    return Result<Token, any Error>.success(try await refreshToken(token))
                } catch {
                    return .failure(error)
                }
            }
            self.finishRefresh(result, of: generation)
        }
    }

    private func finishRefresh(_ result: Result<Token, any Error>, of generation: Int) {
        guard let refresh = refresh.take() else { return }
        // Its end says nothing of the server.
        let isGivenUp = refresh.isAbandoned && (try? result.get()) == nil
        if !isGivenUp { refreshTimes.append(refresh.start) }
        switch result {
        case .success(let token) where generation == self.generation:
            replaceToken(by: token, lineage: current?.lineage)
        // Requests that began to wait after the cancellation, or after the token was set, still need their refresh.
        case .failure where generation == self.generation && !isGivenUp: break
        case .success, .failure: return beginRefreshForWaiters()
        }
        resumeWaiters(result.map { _ in })
    }

    private func beginRefreshForWaiters() {
        guard waiters.count > 0 else { return }
        do {
            try beginRefresh()
        } catch {
            resumeWaiters(.failure(error))
        }
    }

    private func resumeWaiters(_ result: Result<Void, any Error>) {
        for waiter in waiters.takeAll() { waiter.resume(with: result) }
    }

    private func stopWaiting(_ ticket: UInt64) {
        guard let waiter = waiters.remove(ticket) else { return }
        waiter.resume(throwing: CancellationError())
        guard waiters.count == 0 else { return }
        refresh?.abandon()
    }

    // MARK: Requests of the refresh itself

    /// Whether the current task belongs to a refresh that has not ended.
    static var isWithinRefresh: Bool { WaitGraph.isWithin { $0 is Authenticator } }

    /// Whether the calling task belongs to a refresh of this authenticator that has not ended.
    nonisolated var isBypassed: Bool { WaitGraph.isWithin { $0 === self } }
}

extension Authenticator.Token {
    fileprivate func isExpired(at date: Date) -> Bool {
        expires.map { $0 <= date } ?? false
    }
}

extension Authenticator {
    /// An OAuth 2.0 bearer token (RFC 6750), with the refresh token for the next one. Its descriptions contain neither. An
    /// ``Authenticator`` sends and refreshes the token.
    public struct Token: Hashable, Sendable, CustomStringConvertible {
        /// The token, sent in `Authorization` after `Bearer`. It is not checked: `HTTPFields` replaces characters that a
        /// header field cannot contain, such as line breaks, by spaces.
        public var value: String {
            get { secret.value }
            set { secret.value = newValue }
        }
        private var secret: Secret<String>
        /// The expiry date; `nil`, the default, if it is unknown. The token is then used until a server refuses it. An
        /// ``Authenticator`` refreshes the token shortly before this date.
        public var expires: Date?
        /// The token by which the refresh closure of an ``Authenticator`` gets the next bearer token (RFC 6749 §6); `nil`,
        /// the default, without one. The library itself does not use it.
        public var refreshToken: String? {
            get { secretRefreshToken.value }
            set { secretRefreshToken.value = newValue }
        }
        private var secretRefreshToken: Secret<String?>

        /// Creates a token.
        ///
        /// - Parameters:
        ///   - value: The token, without `Bearer`.
        ///   - expires: The expiry date; `nil`, the default, if it is unknown.
        ///   - refreshToken: The refresh token for the next bearer token; `nil`, the default, for none.
        public init(_ value: String, expires: Date? = nil, refreshToken: String? = nil) {
            secret = Secret(value)
            self.expires = expires
            secretRefreshToken = Secret(refreshToken)
        }

        /// The expiry date, without the token and the refresh token, such as `Authenticator.Token(…, until 2030-01-31T12:00:00Z)`;
        /// `Authenticator.Token(…)` if it is unknown.
        public var description: String {
            "Authenticator.Token(…\(expires.map { ", until \($0.formatted(.iso8601))" } ?? ""))"
        }
    }
}

extension Pipeline {
    /// Sends a request with a bearer token, and once more with a refreshed token if the server answers with 401.
    @inline(never)
    func authorize(
        _ request: Request, _ call: inout Call, _ next: Next, by authenticator: Authenticator,
        _ policy: AuthenticationPolicy
    ) async throws -> OpenResponse {
        await authenticator.follow(clock, now)
        if acceptsOnlyStored(request), await authenticator.token == nil {
            return try await answerChallenges(request, &call, next, by: policy)
        }
        var token = try await tokenToCarry(of: authenticator, for: request, &call)
        var isLastTry = false
        while true {
            var attempt = request
            attempt.headers[.authorization] = token.ticket.field
            attempt.token = token
            let response: OpenResponse
            let exchangeCount = call.exchangeCount
            do {
                response = try await answerChallenges(attempt, &call, next, by: policy)
                // An interceptor may have answered in place of the request that was not sent.
                if token.standing == .outdated, call.exchangeCount == exchangeCount { throw OutdatedToken() }
            } catch {
                // An interceptor may have replaced the error.
                let isUnsent =
                    token.standing == .outdated && call.exchangeCount == exchangeCount
                    && !registry.isOfCancellation(error)
                guard isUnsent || error is OutdatedToken else { throw error }
                let outdated = token
                token = try await tokenToCarry(of: authenticator, for: request, &call)
                token.inherit(from: outdated)
                continue
            }
            guard response.head.status.code == 401, !isLastTry, isAnswer(response.head, to: request) else {
                return response
            }
            await call.exchanges.close()
            let ticket = try await renew(authenticator, after: token.refused, for: request, &call)
            token = SentToken(authenticator, ticket, isDue: false)
            // The refresh serves the program's next attempt.
            guard request.body.isReplayable else { throw SessionError.authentication(.bodyNotReplayable) }
            isLastTry = true
        }
    }

    /// Returns the token with which a request passes the next steps. It is refreshed only if it has to be sent.
    @inline(never)
    private func tokenToCarry(
        of authenticator: Authenticator, for request: Request, _ call: inout Call
    ) async throws -> SentToken {
        if let (ticket, isDue) = await authenticator.ticketToCarry() {
            return SentToken(authenticator, ticket, isDue: isDue)
        }
        return SentToken(authenticator, try await renew(authenticator, for: request, &call), isDue: false)
    }

    /// Sends a request after the refresh of its token, which is due.
    func refreshToken(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        var request = request
        if let token = request.token {
            try await updateToken(token, of: &request, refreshingAhead: true, &call)
            token.standing = .usable
        }
        return try await next(request, &call)
    }

    /// Returns the token to send, after a refresh if one is due.
    private func ticketToSend(
        _ authenticator: Authenticator, for request: Request, _ call: inout Call
    ) async throws -> Authenticator.Ticket {
        if let ticket = await authenticator.ticketToSend() { return ticket }
        return try await renew(authenticator, for: request, &call)
    }

    @inline(never)
    private func renew(
        _ authenticator: Authenticator, after refused: Authenticator.Ticket? = nil, for request: Request,
        _ call: inout Call
    ) async throws -> Authenticator.Ticket {
        report(.refreshingToken, of: &call)
        var request = request
        request.adoptTimeout(of: call)
        do {
            let ticket = try await waiting(upTo: request.timeLeft) { try await authenticator.renew(after: refused) }
            guard let ticket else { throw TransportError.unsent(request, after: request.expiredTimeout) }
            return ticket
        } catch {
            throw SessionError.precedingSending(error)
        }
    }

    /// Replaces the token of a request that has waited since it was authorized, if another one has to be sent.
    ///
    /// - Parameter refreshes: Whether the token is refreshed ahead of its expiry.
    /// - Throws: ``OutdatedToken`` if it may be that of another user now.
    @inline(never)
    func updateToken(
        _ token: SentToken, of request: inout Request, refreshingAhead refreshes: Bool = false, _ call: inout Call
    ) async throws {
        // An interceptor may have set another field.
        guard token.hasSent(request.headers[.authorization]) else { return }
        switch await token.authenticator.use(of: token.ticket, refreshingAhead: refreshes) {
        case .send: break
        case .replace:
            let ticket: Authenticator.Ticket
            do {
                ticket = try await ticketToSend(token.authenticator, for: request, &call)
            } catch {
                if !registry.isCurrentCallCancelled { token.standing = .unrefreshed }
                throw error
            }
            token.standing = .usable
            guard ticket.lineage == token.ticket.lineage else { fallthrough }
            token.ticket = ticket
        case .authorizeAgain:
            token.standing = .outdated
            throw OutdatedToken()
        }
        request.headers[.authorization] = token.ticket.field
        // The token may have been refreshed.
        try limitToTimeLeft(&request)
    }
}

/// What is sent in place of a token that a request has had for some time.
///
/// | the current token | use |
/// |---|---|
/// | none, or set by the program since | ``authorizeAgain`` |
/// | refreshed since, or due for a refresh | ``replace`` |
/// | the same | ``send`` |
package enum TokenUse: Hashable, Sendable {
    /// The token itself.
    case send
    /// The current one, after a refresh if that is due. It has the same user.
    case replace
    /// The request passes the steps after the authentication again: the cache may hold responses to another user.
    case authorizeAgain

    init(of ticket: Authenticator.Ticket, current: Authenticator.Ticket?, isDue: Bool) {
        if current?.lineage != ticket.lineage {
            self = .authorizeAgain
        } else {
            self = current?.version == ticket.version && !isDue ? .send : .replace
        }
    }
}

extension Request {
    /// The token of the request; `nil` if no authenticator has authorized it.
    var token: SentToken? {
        get { self[SentTokenAttribute.self] }
        set { self[SentTokenAttribute.self] = newValue }
    }

    /// Called after a wait between authorization and a second look at the cache.
    ///
    /// - Throws: ``OutdatedToken`` if the program has set or removed the token, so that the request must be authorized
    ///   again.
    func checkToken() async throws {
        guard let token, await token.authenticator.use(of: token.ticket) == .authorizeAgain else { return }
        throw OutdatedToken()
    }
}

/// The token that a request carries, and the one that was sent in its place.
final class SentToken: Sendable {
    let authenticator: Authenticator
    /// Guarded by a lock, because an interceptor may send the request concurrently.
    private let state: Lock<State>

    private struct State: Sendable {
        /// The token that was sent last, after those that it has replaced.
        var tickets: [Authenticator.Ticket]
        /// The last one of these that a server has refused.
        var refused: Authenticator.Ticket?
        var standing: Standing
        /// The turns of rate limits that were waited for, but not used.
        var turns: [ObjectIdentifier: TokenBucket.Turn] = [:]
    }

    /// Whether the token can be sent.
    enum Standing {
        case usable
        /// It has to be refreshed before, which has not been tried.
        case due
        /// Its refresh has failed, so that the request was not sent.
        case unrefreshed
        /// It may be that of another user now, so that the request was not sent.
        case outdated
    }

    init(_ authenticator: Authenticator, _ ticket: Authenticator.Ticket, isDue: Bool) {
        self.authenticator = authenticator
        state = Lock(State(tickets: [ticket], standing: isDue ? .due : .usable))
    }

    /// Takes over what the request has waited for with an outdated token.
    fileprivate func inherit(from outdated: SentToken) {
        let turns = outdated.state.withLock(\.turns)
        if !turns.isEmpty { state.withLock { $0.turns = turns } }
    }

    /// Keeps the turn of a rate limit for the request that takes the place of this one, whose token is outdated; returns
    /// `false` if the token is not.
    func keepTurn(_ turn: TokenBucket.Turn, of limit: AnyObject) -> Bool {
        state.withLock { state in
            guard state.standing == .outdated else { return false }
            state.turns[ObjectIdentifier(limit)] = turn
            return true
        }
    }

    /// Returns the turn that was kept for the request; `nil` if there is none.
    func takeTurn(of limit: AnyObject) -> TokenBucket.Turn? {
        state.withLock { $0.turns.isEmpty ? nil : $0.turns.removeValue(forKey: ObjectIdentifier(limit)) }
    }

    var standing: Standing {
        get { state.withLock(\.standing) }
        set { state.withLock { $0.standing = newValue } }
    }

    /// The token that was sent last.
    var ticket: Authenticator.Ticket {
        get { state.withLock { $0.tickets[$0.tickets.count - 1] } }
        set {
            state.withLock { state in
                if state.tickets.last?.version != newValue.version { state.tickets.append(newValue) }
            }
        }
    }

    /// The token that a server has refused: not the one that was sent last if an interceptor returns an earlier response.
    var refused: Authenticator.Ticket { state.withLock { $0.refused ?? $0.tickets[$0.tickets.count - 1] } }

    /// Notes that a server has refused a request with a value of `Authorization`.
    func noteRefusal(of field: String?) {
        state.withLock { state in
            guard let ticket = state.tickets.last(where: { $0.field == field }) else { return }
            if ticket.version >= state.refused?.version ?? 0 { state.refused = ticket }
        }
    }

    /// Whether a value of `Authorization` is that of the token or of one that it has replaced, which the request has in
    /// the steps before the refresh.
    func hasSent(_ field: String?) -> Bool {
        state.withLock { $0.tickets.contains { $0.field == field } }
    }
}

/// The token of a request that has not been sent is not that of its authenticator any more.
struct OutdatedToken: Error {}

private enum SentTokenAttribute: CallAttribute {
    static var defaultValue: SentToken? { nil }
}
