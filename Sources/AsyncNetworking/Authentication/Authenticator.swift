// SPDX-License-Identifier: MIT

public import FoundationEssentials
import Synchronization

/// Sends a bearer token with the requests to some origins, and has it refreshed, once for however many requests wait.
///
/// ```swift
/// let authenticator = Authenticator(for: [url], token: stored) { old in
///     try await logIn.post("token", parameters: ["refresh": refreshToken], as: .decodable(Answer.self)).value.token
/// }
/// let api = SessionManager(baseURL: url) { $0.authentication.authenticators = [authenticator] }
/// ```
///
/// | when | what happens |
/// |---|---|
/// | there is no token, or it ends within ``leeway`` | it is refreshed before a request is sent |
/// | a request comes back with 401 | it is refreshed, unless that has happened since the request was sent, and the request is sent again, once |
/// | several requests need it | one refresh serves them all; if it fails, all of them fail by its error, and the next request begins anew |
/// | the token is still good and its refresh ahead of time fails | the old one is sent |
/// | there were ``refreshLimit`` refreshes within ``refreshPeriod`` | ``SessionError/AuthenticationProblem/excessiveRefreshes(limit:)`` |
/// | the refresh makes a request itself | that one goes without this token, and does not wait for itself |
/// | all requests that wait are cancelled | the refresh is cancelled |
public actor Authenticator {
    /// How long before its end a token is refreshed; 30 s by default.
    public nonisolated let leeway: Duration
    /// The most refreshes within ``refreshPeriod``; 5 by default.
    public nonisolated let refreshLimit: Int
    /// The time over which refreshes are counted; 30 s by default.
    public nonisolated let refreshPeriod: Duration

    nonisolated let origins: Set<Origin>
    private let refreshToken: @Sendable (BearerToken?) async throws -> BearerToken
    private let now: @Sendable () -> Date
    private let uptime: Stopwatch

    private var current: Ticket?
    /// The version of the last token, whether it is there still or not.
    private var version = 0
    private var refresh: Refresh?
    /// When the latest refreshes began.
    private var refreshTimes: [Duration] = []

    /// Creates an authenticator.
    ///
    /// - Parameters:
    ///   - urls: URLs whose origins the token is for; it goes to no other.
    ///   - token: The token to begin with; nil for none yet.
    ///   - leeway: How long before its end a token is refreshed.
    ///   - refreshLimit: The most refreshes within `refreshPeriod`.
    ///   - refreshPeriod: The time over which refreshes are counted.
    ///   - refresh: Makes a new token from the old one, if there is one. It runs in a task of its own; what it throws is the
    ///     error of all requests that wait for it, as it is.
    public init(
        for urls: [URL], token: BearerToken? = nil, leeway: Duration = .seconds(30), refreshLimit: Int = 5,
        refreshPeriod: Duration = .seconds(30), refresh: @escaping @Sendable (BearerToken?) async throws -> BearerToken
    ) {
        self.init(
            for: urls, token: token, leeway: leeway, refreshLimit: refreshLimit, refreshPeriod: refreshPeriod,
            now: { .now }, clock: ContinuousClock(), refresh: refresh)
    }

    package init(
        for urls: [URL], token: BearerToken? = nil, leeway: Duration = .seconds(30), refreshLimit: Int = 5,
        refreshPeriod: Duration = .seconds(30), now: @escaping @Sendable () -> Date, clock: any Clock<Duration>,
        refresh: @escaping @Sendable (BearerToken?) async throws -> BearerToken
    ) {
        origins = Set(urls.map { Origin($0) })
        self.leeway = leeway
        self.refreshLimit = refreshLimit
        self.refreshPeriod = refreshPeriod
        self.now = now
        uptime = Stopwatch(clock)
        refreshToken = refresh
        current = token.map { Ticket(token: $0, version: 0) }
    }

    /// The token of now, which may have ended; nil where there is none.
    public var token: BearerToken? { current?.token }

    /// Takes another token, such as that of another user, or none. A refresh that is going on does not replace it.
    public func setToken(_ token: BearerToken?) {
        replaceToken(by: token)
        refresh?.isOutdated = true
    }

    // MARK: For the pipeline

    /// A token, and how many there were before it.
    struct Ticket: Sendable {
        let token: BearerToken
        let version: Int

        /// The value of `Authorization`.
        var field: String { "Bearer \(token.value)" }
    }

    /// What to send; nil where a refresh has to come first.
    func ticketToSend() -> Ticket? {
        isDue ? nil : current
    }

    /// The token as it is, after a refresh.
    var ticket: Ticket? { current }

    /// Returns when there is a token to send that is newer than that of `refused`, which a server did not take.
    func renew(after refused: Ticket? = nil) async throws {
        if let refused, refused.version != version { return }
        do {
            try await awaitRefresh()
        } catch {
            // A token that has not ended yet will do, unless a server has refused it.
            guard refused == nil, !(error is CancellationError), let current, !current.token.isOver(at: now()) else {
                throw error
            }
        }
    }

    private var isDue: Bool {
        guard let current else { return true }
        return current.token.isOver(at: now().addingTimeInterval(leeway / .seconds(1)))
    }

    private func replaceToken(by token: BearerToken?) {
        version += 1
        current = token.map { Ticket(token: $0, version: version) }
    }

    // MARK: One refresh for all

    /// A refresh that is going on.
    private struct Refresh {
        let number: Int
        var task: Task<Void, Never>?
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        /// Whether it was cancelled, because nobody waited any more.
        var isAbandoned = false
        /// Whether the program has set a token since.
        var isOutdated = false
    }

    private var lastNumber = 0

    private func takeNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    private func awaitRefresh() async throws {
        let number = takeNumber()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                guard !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
                do {
                    if refresh == nil { try beginRefresh() }
                } catch {
                    return continuation.resume(throwing: error)
                }
                refresh?.waiters[number] = continuation
            }
        } onCancel: {
            // It ends after one visit here. The waiter is there by then: nothing suspends on the way to it.
            Task { await self.stopWaiting(number) }
        }
    }

    private func beginRefresh() throws {
        refreshTimes.removeAll { $0 <= uptime.elapsed - refreshPeriod }
        guard refreshTimes.count < refreshLimit else {
            throw SessionError.authentication(.excessiveRefreshes(limit: refreshLimit))
        }
        refreshTimes.append(uptime.elapsed)
        let number = takeNumber()
        refresh = Refresh(number: number)
        // It ends with the refresh, and is cancelled with the last request that waits for it.
        refresh?.task = Task { [refreshToken, token = current?.token] in
            let result = await Self.refreshing(self) { try await refreshToken(token) }
            self.finishRefresh(result)
        }
    }

    private func finishRefresh(_ result: Result<BearerToken, any Error>) {
        guard let refresh else { return }
        self.refresh = nil
        if case .success(let token) = result, !refresh.isOutdated { replaceToken(by: token) }
        if case .failure = result, refresh.isAbandoned || refresh.isOutdated, !refresh.waiters.isEmpty {
            // Those who came after it was given up, or for another token, have not had their refresh yet.
            if refresh.isOutdated, !isDue { return resume(refresh.waiters, .success(())) }
            do {
                try beginRefresh()
                self.refresh?.waiters = refresh.waiters
            } catch {
                resume(refresh.waiters, .failure(error))
            }
            return
        }
        resume(refresh.waiters, result.map { _ in })
    }

    private func resume(_ waiters: [Int: CheckedContinuation<Void, any Error>], _ result: Result<Void, any Error>) {
        for waiter in waiters.values { waiter.resume(with: result) }
    }

    private func stopWaiting(_ number: Int) {
        guard let waiter = refresh?.waiters.removeValue(forKey: number) else { return }
        waiter.resume(throwing: CancellationError())
        guard refresh?.waiters.isEmpty == true else { return }
        refresh?.isAbandoned = true
        refresh?.task?.cancel()
    }

    // MARK: Requests of the refresh itself

    @TaskLocal private static var refreshing: Set<ObjectIdentifier> = []

    /// Whether the calling task is at work for this authenticator's refresh.
    nonisolated var isBypassed: Bool { Self.refreshing.contains(ObjectIdentifier(self)) }

    private nonisolated static func refreshing(
        _ authenticator: Authenticator, _ refresh: @Sendable () async throws -> BearerToken
    ) async -> Result<BearerToken, any Error> {
        await $refreshing.withValue(refreshing.union([ObjectIdentifier(authenticator)])) {
            do {
                return .success(try await refresh())
            } catch {
                return .failure(error)
            }
        }
    }
}

extension BearerToken {
    fileprivate func isOver(at date: Date) -> Bool {
        expires.map { $0 <= date } ?? false
    }
}
