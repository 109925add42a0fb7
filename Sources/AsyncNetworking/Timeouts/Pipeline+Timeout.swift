// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

extension Request {
    /// The time limit of the whole call; `nil`, the default, for none.
    ///
    /// It includes all attempts, redirects and challenges, the waits between them, interceptors, and the reading of the
    /// response's body until its last byte has been received, also while a task is suspended or a WebSocket connection is
    /// open. It does not include the time before a task first runs, nor deserialization. All requests of a download are one call; an event source, and
    /// WebSocket connections that are made again, measure each request anew.
    ///
    /// An interceptor or a redirect policy can change it, but not remove it: a request without a limit keeps that of the
    /// call. If the call had none, the time is measured from the first interceptor or redirect that sets one, also
    /// over retries.
    ///
    /// When it expires, the call fails with ``ANHTTP/TransportError/Reason/timedOut(_:)``; with zero or less, nothing
    /// is sent. A retry whose wait would not end before is not made; the call then ends with the last response or
    /// error. The program's own closures, such as interceptors and the refresh of a token, are not interrupted, nor is
    /// an exchange of a transport of the program's own that does not implement ``ANHTTP/Timeouts/total``.
    /// ``ANHTTP/TransferOptions/timeouts`` limit the phases of each exchange instead.
    public var timeout: Duration? {
        get { self[TimeLimits.self]?.call?.duration }
        set {
            var limits = self[TimeLimits.self] ?? TimeLimits()
            limits.call = newValue.map { TimeLimit(duration: $0, stopwatch: limits.call?.stopwatch) }
            // A request without a limit has no attribute.
            if limits.call == nil, limits.attempts == nil { return self = outlivingCall() }
            self[TimeLimits.self] = limits
        }
    }

    /// The time left for the call and for its attempts, at least zero; `nil` without a limit.
    var timeLeft: Duration? { self[TimeLimits.self]?.timeLeft }

    /// The time left for the call, at least zero; `nil` without a limit.
    var callTimeLeft: Duration? { self[TimeLimits.self]?.call?.left }

    /// The time left for all attempts of the call together, at least zero; `nil` without a limit.
    var attemptsTimeLeft: Duration? { self[TimeLimits.self]?.attempts?.left }

    /// Whether the request has no options, policies or other attributes of its own but a time limit.
    var hasOnlyTimeout: Bool { options == nil && !attributes.hasAttributes(besides: TimeLimits.self) }

    /// Starts measuring the time of the call anew, without the limits of an earlier call.
    @inline(never)
    mutating func startTimeout(on clock: any Clock<Duration>) {
        guard let limits = self[TimeLimits.self] else { return }
        self = outlivingCall()
        self[TimeLimits.self] = limits.call.map { call in
            TimeLimits(call: TimeLimit(duration: call.duration, stopwatch: Stopwatch(clock)))
        }
    }

    /// Returns the request with what it continues of the request that it replaces: what the session and its tasks have
    /// attached to that one, the transfer options, and the time limits, unless it has its own. A redirect policy or an
    /// interceptor may return a new request, or one that it has kept from an earlier call.
    ///
    /// - Parameter keepsRole: Whether it is for the same purpose, as to open a WebSocket connection.
    @inline(never)
    func continuing(_ other: Request, keepingRole keepsRole: Bool = true) -> Request {
        var request = self
        if let own = self[TimeLimits.self], !own.areMeasured(with: other[TimeLimits.self]) {
            request = outlivingCall()
            request.timeout = own.call?.duration
        }
        request.fillCallAttributes(from: other, keepingRole: keepsRole)
        if request.webSocketOptions != nil { request.url = request.url.withoutWebSocketScheme }
        if request.attemptInterceptors.isEmpty, !other.attemptInterceptors.isEmpty {
            request.attemptInterceptors = other.attemptInterceptors
        }
        request.inheritOptions(of: other)
        if var limits = other[TimeLimits.self] {
            if let own = request[TimeLimits.self]?.call {
                limits.call = TimeLimit(duration: own.duration, stopwatch: limits.call?.stopwatch)
            }
            request[TimeLimits.self] = limits
        }
        return request
    }

    /// Returns the request without the limits of its call, for an exchange that outlives it.
    @inline(never)
    func outlivingCall() -> Request {
        var request = self
        if let exchange = self[TimeLimits.self]?.exchange, options?.timeouts.total == exchange.reduced {
            request.options?.timeouts.total = exchange.own
        }
        request[TimeLimits.self] = nil
        return request
    }

    /// Takes over the limit that an interceptor or a redirect has set for the request on its way.
    @inline(never)
    mutating func adoptTimeout(of call: Call) {
        guard let limit = call.limit else { return }
        var limits = self[TimeLimits.self] ?? TimeLimits()
        limits.call = limit
        self[TimeLimits.self] = limits
    }

    /// Limits all attempts of the call together.
    @inline(never)
    mutating func limitAttempts(to deadline: Duration, since start: Stopwatch) {
        var limits = self[TimeLimits.self] ?? TimeLimits()
        limits.attempts = TimeLimit(duration: deadline, stopwatch: start)
        self[TimeLimits.self] = limits
    }

    /// The limit of the call or of its attempts that has expired; `nil` if both have time left.
    @inline(never)
    var expiredTimeout: Duration? { self[TimeLimits.self]?.expired }

    /// The limit of the call or of its attempts that expires first; `nil` without a limit.
    @inline(never)
    var nextTimeout: Duration? { self[TimeLimits.self]?.next?.duration }

    /// Limits the total time of an exchange to the time left.
    ///
    /// - Throws: `TransportError.timedOut` if no time is left.
    @inline(never)
    fileprivate mutating func limitToTimeLeft() throws(TransportError) {
        guard var limits = self[TimeLimits.self], let left = limits.timeLeft else { return }
        guard left > .zero else { throw .unsent(self, after: limits.expired) }
        guard var options else { return }
        let own = options.timeouts.total == limits.exchange?.reduced ? limits.exchange?.own : options.timeouts.total
        let reduced = min(own ?? left, left)
        options.timeouts.total = reduced
        self.options = options
        limits.exchange = (own, reduced)
        self[TimeLimits.self] = limits
    }

    /// Returns an error with the limit of the call, or of its attempts, in place of the time that was left for the last
    /// exchange or wait.
    @inline(never)
    func namingTimeout(_ error: any Error) -> any Error {
        guard let failure = error as? TransportError, case .timedOut(let phase) = failure.reason,
            let limit = expiredTimeout
        else { return error }
        return TransportError.timedOut(phase, limit, failure.context)
    }
}

extension TransportError {
    /// The error of a request whose time is over before it is sent.
    static func unsent(_ request: Request, after limit: Duration?) -> TransportError {
        var context = FailureContext(request.url)
        context.precedesSending = true
        return .timedOut(.request, limit, context)
    }
}

extension Call {
    /// Begins to measure the time limit that an interceptor or a redirect has set, for all attempts together.
    @inline(never)
    mutating func measureTimeout(of request: inout Request, on clock: any Clock<Duration>) {
        guard let limit = request[TimeLimits.self]?.call, limit.stopwatch == nil else { return }
        let stopwatch = limitStart ?? Stopwatch(clock)
        limitStart = stopwatch
        request[TimeLimits.self]?.call?.stopwatch = stopwatch
    }

    /// Notes the time limit of a request that is sent in place of the call's.
    @inline(never)
    mutating func noteTimeout(of request: Request) { limit = request[TimeLimits.self]?.call }
}

extension Pipeline {
    /// Limits the total time of an exchange to the time left.
    ///
    /// - Throws: `TransportError.timedOut` if no time is left.
    func limitToTimeLeft(_ request: inout Request) throws(TransportError) {
        if let ownClock { request.sessionClock = ownClock }
        try request.limitToTimeLeft()
    }

    /// Returns when a task is running that is about to send a request of its call.
    ///
    /// - Throws: `TransportError.timedOut` if the time of the request is over before, and `CancellationError` if the task, the
    ///   calling task or the call is cancelled.
    func waitUntilRunning(_ core: TaskCore, toSend request: Request) async throws {
        if core.isRunning { return }
        let end: Void? = try await waiting(upTo: request.timeLeft) { try await core.waitUntilRunning() }
        if end == nil { throw TransportError.unsent(request, after: request.expiredTimeout) }
    }
}

/// The time limits of a call.
private struct TimeLimits: RequestAttribute, Sendable {
    static var defaultValue: TimeLimits? { nil }

    /// The limit of the whole call.
    var call: TimeLimit?
    /// The limit of all attempts together.
    var attempts: TimeLimit?
    /// The total time of an exchange that the program or the session permits, and the time to which it was reduced.
    var exchange: (own: Duration?, reduced: Duration)?

    /// Whether what is measured is measured as in other limits of the same call.
    func areMeasured(with other: TimeLimits?) -> Bool {
        (call?.stopwatch == nil || call?.stopwatch == other?.call?.stopwatch)
            && (attempts == nil || attempts?.stopwatch == other?.attempts?.stopwatch)
    }

    /// The time left until the first limit expires, at least zero; `nil` if nothing is measured yet.
    var timeLeft: Duration? { next?.left }

    /// The limit that expires first, that of the call if both do; `nil` if nothing is measured yet.
    var next: TimeLimit? {
        [call, attempts].compactMap(\.self).filter { $0.left != nil }.min { $0.left ?? .zero < $1.left ?? .zero }
    }

    /// The duration of the limit that has expired, that of the call first; `nil` if both have time left.
    var expired: Duration? { next.flatMap { $0.left == .zero ? $0.duration : nil } }
}

/// The limit of a call, or of its attempts.
struct TimeLimit: Sendable {
    let duration: Duration
    /// Measures the time since the limit began to apply; `nil` before that.
    var stopwatch: Stopwatch?

    /// The time left, at least zero; `nil` if nothing is measured yet.
    var left: Duration? { stopwatch.map { max(.zero, duration.bounded - $0.elapsed) } }
}

/// Measures the time since its creation on a clock.
struct Stopwatch: Equatable, Sendable {
    private let start: Duration
    /// The time on a clock other than the usual one; `nil` for that.
    private let other: OtherClock?
    /// The time since when the usual clock is read: every request measures its time, and an instant of a clock is slow to
    /// store.
    private static let epoch = ContinuousClock.now

    private final class OtherClock: Sendable {
        let elapsed: @Sendable () -> Duration

        init(_ clock: some Clock<Duration>) {
            let start = clock.now
            elapsed = { start.duration(to: clock.now) }
        }
    }

    init(_ clock: some Clock<Duration>) {
        if type(of: clock) == ContinuousClock.self {
            (start, other) = (Self.epoch.duration(to: .now), nil)
        } else {
            (start, other) = (.zero, OtherClock(clock))
        }
    }

    var elapsed: Duration { other?.elapsed() ?? Self.epoch.duration(to: .now) - start }

    static func == (left: Stopwatch, right: Stopwatch) -> Bool {
        left.start == right.start && left.other === right.other
    }
}
