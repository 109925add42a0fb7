// SPDX-License-Identifier: MIT

public import ANHTTP
import Synchronization

// The events of a task, as a tree. `*` marks an event that occurs any number of times, `?` one that may be missing, and
// `+` one that only the task itself reports, not a monitor:
//
//     created                          +
//     ├── resumed                      *+
//     ├── suspended                    *+
//     ├── cancelled                    ?+
//     ├── began                        ?  missing if the task ends before it runs
//     │   ├── omittingLastEventID      ?  first, if an event source reconnects
//     │   ├── exchange(1, .started)    *  the first request, or one after a redirect, a retry or a challenge
//     │   │   ├── exchange(1, .informational) *
//     │   │   ├── exchange(1, .uploadProgress) *  for monitors
//     │   │   ├── exchange(1, .head)   ?
//     │   │   ├── exchange(1, .downloadProgress) *  for monitors
//     │   │   └── exchange(1, .finished) ?  missing if nothing could be sent
//     │   ├── refreshingToken          *  before an exchange
//     │   ├── answeringChallenge       *  between two exchanges
//     │   ├── waitingForConnectivity   *  between two exchanges
//     │   ├── redirected               *  between two exchanges
//     │   ├── retrying                 *  between two attempts
//     │   ├── response                 *+ of a download several, if it is continued
//     │   ├── continued                *+
//     │   ├── uploadProgress           *+
//     │   └── downloadProgress         *+
//     └── ended

/// An event in the life of a task: of one that a function returned, as its ``AnySessionTask/events``, and of every
/// request of a session, also of an async function, as each ``EventMonitor`` receives it.
///
/// | event | when | received by |
/// |---|---|---|
/// | ``created``, ``resumed``, ``suspended``, ``cancelled`` | the program controls a task | readers |
/// | ``began`` | the request begins | both |
/// | ``omittingLastEventID(_:)`` | before a request of an event source that cannot name the last event | monitors |
/// | ``exchange(_:_:)`` | during each exchange, from `started` to `finished` | both, its progress by monitors |
/// | ``redirected(by:to:)`` | after an exchange answered by a redirect that is followed | both |
/// | ``refreshingToken`` | before waiting for an ``Authenticator`` to refresh its token | both |
/// | ``answeringChallenge(of:)`` | after an exchange that is answered by a challenge for which there is a credential | both |
/// | ``waitingForConnectivity(_:)`` | after an exchange that failed because there is no route, before waiting for one | both |
/// | ``retrying(after:)`` | after an attempt that will be retried, before the wait | both |
/// | ``response(_:)`` | the head of the response that the task is about has arrived | readers |
/// | ``continued(offset:total:)`` | a download is resumed | readers |
/// | ``uploadProgress(_:)``, ``downloadProgress(_:)`` | the task has made progress | readers |
/// | ``ended(_:_:)`` | last, in every case | both |
///
/// A request that an interceptor or the response cache answers without the network has no exchange. A download that
/// needs several requests has the events of all between ``began`` and ``ended(_:_:)``, an event source that reconnects
/// both for each. The validation of a cached response in the background has no events.
@nonexhaustive
public enum TaskEvent: Sendable {
    /// The task was created; always its first event.
    case created
    /// The task was started, or continued after a suspension; it runs as soon as
    /// ``SessionConfiguration/maximumConcurrentTasks`` permits.
    case resumed
    /// The task was suspended after it had been resumed; a task that was never resumed reports no such event.
    case suspended
    /// The task was cancelled and will end, usually with the outcome ``TaskOutcome/cancelled``; it ends successfully if
    /// it was already complete.
    case cancelled
    /// The request begins, before interceptors receive it; the first event that monitors receive. A task begins its
    /// request when it first runs, not when it is created.
    case began
    /// An ``EventSource`` reconnects without `Last-Event-ID`, because no header field can contain this ID of the last event,
    /// such as one with a control character, or it is longer than 4 KiB. The server may then send events again, or leave out some.
    case omittingLastEventID(String)
    /// An event of one exchange with a server, after the number of the exchange in its task, starting at 1; see
    /// ``ANHTTP/ExchangeEvent``. A request has a further exchange for each redirect, answered challenge, token refreshed
    /// after a 401, wait for a route, and retry. Exchanges overlap if an interceptor, such as ``Hedging``, or a segmented
    /// download sends requests concurrently. The progress is passed to monitors only: a task reports its own.
    indirect case exchange(Int, ExchangeEvent)
    /// A redirect, the response with the head `by`, is followed: `to` is sent next. `to` is the request that
    /// ``RedirectPolicy/decision`` returned or, without one, that the policy proposed, before credentials are added.
    indirect case redirected(by: ResponseHead, to: Request)
    /// The request needs a new bearer token, before it is sent or because the server answered the last one with 401,
    /// and waits for the ``Authenticator`` to refresh it. The event is also reported, but without a wait, if another
    /// request has refreshed the token since this one was sent.
    case refreshingToken
    /// There is a credential for this protection space, and the request is sent again with it; if its body is not
    /// replayable, it fails instead. Not reported for credentials that are sent without waiting for a challenge: one
    /// that names a single scheme, and one that a server or proxy of this session has accepted before.
    indirect case answeringChallenge(of: ProtectionSpace)
    /// The request failed with this error because there is no route, and is sent again when there is one, unless
    /// ``ANHTTP/Timeouts/connectivity``, `Request.timeout` or ``RetryPolicy/deadline`` expires before.
    case waitingForConnectivity(TransportError)
    /// This attempt failed, and the request is sent again after its ``ANHTTP/RetryHistory/Attempt/wait``.
    indirect case retrying(after: RetryHistory.Attempt)
    /// The head of the final response has arrived; redirects, answered challenges and retried responses are not
    /// reported. A download that needs several requests reports several. A response that is rejected afterwards is
    /// reported, too, but not one that only shows that a download cannot be resumed.
    indirect case response(ResponseHead)
    /// A download is resumed after `offset` bytes; `total` is the size of the whole file, or `nil` if unknown.
    case continued(offset: Int64, total: Int64?)
    /// Bytes of the request's body were sent; see ``AnySessionTask/uploadProgress``. A late or slow reader receives
    /// only the latest of these events.
    case uploadProgress(TransferProgress)
    /// Bytes of the response's body were received; see ``AnySessionTask/downloadProgress``. A late or slow reader
    /// receives only the latest of these events.
    case downloadProgress(TransferProgress)
    /// The task has ended with this outcome, and these are the figures of its call; always the last event.
    ///
    /// The outcome of a request of an async function covers receiving the response and, if it is streamed, the closure
    /// that reads it: a failure after that, such as of the serializer, counts as success.
    indirect case ended(TaskOutcome, CallMetrics)
}

extension TaskEvent {
    /// The progress of sending the request's body, if this is such an event.
    var uploadProgress: TransferProgress? {
        if case .uploadProgress(let progress) = self { progress } else { nil }
    }

    /// The kind of an event of which a task may have any number; `nil` for one that it has once, and for progress.
    var detailKind: DetailKind? {
        switch self {
        case .resumed: .resumed
        case .suspended: .suspended
        case .response: .response
        case .continued: .continued
        case .exchange(_, .started): .request
        case .exchange(_, .informational(let head)): head.headers.contains(.location) ? .location : .other
        case .exchange, .redirected, .refreshingToken, .answeringChallenge, .waitingForConnectivity, .retrying: .other
        case .created, .cancelled, .began, .omittingLastEventID, .uploadProgress, .downloadProgress, .ended: nil
        }
    }

    /// A kind of events of which the newest is always kept.
    enum DetailKind: Int {
        /// The newest one is part of the state of the task.
        case resumed, suspended, response, continued, request
        /// An interim response that tells where a resumable upload is.
        case location
        case other
    }

    /// The progress of receiving the response's body, if this is such an event.
    var downloadProgress: TransferProgress? {
        if case .downloadProgress(let progress) = self { progress } else { nil }
    }
}

/// The outcome of a task that has ended; see ``TaskStatus/outcome``.
public enum TaskOutcome: Sendable {
    /// The task has a value, which ``SessionTask/value`` returns.
    case succeeded
    /// The task failed with this error, which ``SessionTask/value`` throws: a ``SessionError``, or an error of the
    /// program's own code.
    case failed(any Error)
    /// The task was cancelled before it was complete, by the program or by its manager, or the program's own code has
    /// thrown `CancellationError`. ``SessionTask/value`` throws `CancellationError`.
    case cancelled

    init(_ error: any Error) {
        self = error is CancellationError ? .cancelled : .failed(error)
    }
}

/// A snapshot of a task; see ``AnySessionTask/status``.
public struct TaskStatus: Sendable {
    /// The state of the task at the time of the snapshot.
    public var state: TaskState
    /// The head of the final response, also of one that is rejected afterwards; `nil` before it has arrived, and for a
    /// task that ended without one. If a download needs several requests, it is that of the latest one.
    public var response: ResponseHead?
    /// The progress of sending the request's body; `nil` before the first report.
    public var uploadProgress: TransferProgress?
    /// The progress of receiving the final response's body; `nil` before the first report.
    public var downloadProgress: TransferProgress?
    /// The outcome; `nil` before the task has ended.
    public var outcome: TaskOutcome?
}

/// A receiver of the events of a session's requests, for logs, metrics and traces. It takes effect as one of the
/// ``SessionConfiguration/eventMonitors``.
///
/// ```swift
/// struct RequestLog: EventMonitor {
///     func receive(_ event: TaskEvent, of task: AnySessionTask) {
///         print(task, event)
///     }
/// }
/// ```
///
/// The events of one request arrive in order and one at a time, unless an interceptor or a segmented download
/// sends requests concurrently; the number of ``TaskEvent/exchange(_:_:)`` then distinguishes them.
/// Those of different requests may arrive at the same time, and `task` identifies the request. Events are delivered
/// synchronously on the thread where they occur, often an event-loop thread of the session, so a monitor must not block.
/// The session keeps its monitors as long as it exists. Without monitors its async functions create no events.
public protocol EventMonitor: Sendable {
    /// Receives an event of a request, from ``TaskEvent/began`` to ``TaskEvent/ended(_:_:)``.
    ///
    /// Called synchronously on the thread where the event occurs, often an event-loop thread of the session, so it
    /// must return immediately. Calls for different requests may overlap; calls for one request do not, unless an interceptor or a
    /// segmented download sends requests concurrently.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - task: The request's task, whose ``AnySessionTask/id`` distinguishes requests.
    func receive(_ event: TaskEvent, of task: AnySessionTask)
}

/// A receiver of the events of a call's exchanges, which may overlap.
protocol CallEventSink: Sendable {
    /// Handles an event of the exchange with a number; see ``ExchangeEventSink/receive(_:)``.
    func receive(_ event: ExchangeEvent, of exchange: Int)
}

/// A receiver that does not distinguish exchanges.
struct PlainEventSink: CallEventSink {
    let base: any ExchangeEventSink

    func receive(_ event: ExchangeEvent, of exchange: Int) { base.receive(event) }
}

/// Forwards the events of one call to its task and to the monitors of its session.
final class CallMonitor: Sendable {
    private let task: AnySessionTask
    private let monitors: [any EventMonitor]
    /// A further receiver of the events of exchanges; the task's, if it has one.
    private let sink: (any CallEventSink)?
    private let counts = CallCounts()
    /// Whether the call has ended, after which a request that an interceptor has not waited for may still have events.
    private let hasEnded = Atomic(false)

    init(_ task: AnySessionTask, monitors: [any EventMonitor], sink: (any CallEventSink)?) {
        self.task = task
        self.monitors = monitors
        self.sink = sink
    }

    /// Counts an exchange that begins, and returns the receiver of its events.
    ///
    /// - Parameter metrics: A further receiver; `nil` for none.
    func beginExchange(notingIn metrics: ExchangeMetrics?) -> ExchangeEvents {
        ExchangeEvents(monitor: self, metrics: metrics, number: counts.beginExchange())
    }

    fileprivate func receive(_ event: ExchangeEvent, of exchange: Int) {
        guard !hasEnded.load(ordering: .acquiring) else { return }
        counts.note(event)
        sink?.receive(event, of: exchange)
        for monitor in monitors { monitor.receive(.exchange(exchange, event), of: task) }
    }

    func receive(_ event: TaskEvent) {
        guard !hasEnded.load(ordering: .acquiring) else { return }
        counts.note(event)
        task.core?.receive(event)
        for monitor in monitors { monitor.receive(event, of: task) }
    }

    /// Reports the end of the request of an async function; a task reports its own, which may be later.
    func end(_ outcome: TaskOutcome, of call: Call) {
        let metrics = counts.metrics(of: call)
        if let core = task.core { core.note(metrics) } else { receive(.ended(outcome, metrics)) }
        hasEnded.store(true, ordering: .releasing)
    }
}

/// Forwards the events of one exchange.
final class ExchangeEvents: ExchangeEventSink {
    private let monitor: CallMonitor
    private let metrics: ExchangeMetrics?
    /// The number of the exchange among those of its call, starting at 1.
    let number: Int

    fileprivate init(monitor: CallMonitor, metrics: ExchangeMetrics?, number: Int) {
        (self.monitor, self.metrics, self.number) = (monitor, metrics, number)
    }

    func receive(_ event: ExchangeEvent) {
        metrics?.receive(event)
        monitor.receive(event, of: number)
    }
}

extension TaskEvent: CustomStringConvertible {
    /// The event as text for a log line, without header fields, bodies or the secrets of URLs. An error whose description
    /// may contain them, or a text of the program, is shown by its ``SessionError/label``, and one of the program's own by
    /// its type.
    public var description: String { words.printable }

    private var words: String {
        switch self {
        case .created: "created"
        case .resumed: "resumed"
        case .suspended: "suspended"
        case .cancelled: "cancelled"
        case .began: "began"
        case .omittingLastEventID: "is sent without the ID of the last event"
        case .exchange(_, .started(let request)): "sends \(request)"
        case .exchange(_, .informational(let head)): "received an interim \(head.status.code)"
        case .exchange(_, .head(let head)): "received \(head.status.code) over \(head.version)"
        case .exchange(_, .uploadProgress(let progress)): "sent \(progress.words)"
        case .exchange(_, .downloadProgress(let progress)): "received \(progress.words)"
        case .exchange(_, .finished(let metrics)): "exchange finished after \(metrics.total.rounded)"
        case .exchange: "exchange event"
        case .redirected(let head, let request): "is redirected by \(head.status.code) to \(request)"
        case .refreshingToken: "waits for a new token"
        case .answeringChallenge(let space): "answers a challenge by \(space.words)"
        case .waitingForConnectivity(let error): "waits for a route: \(error.outline)"
        case .retrying(let attempt): "waits \(attempt.wait.rounded) for a retry, because of \(attempt.reason)"
        case .response(let head): "has the response \(head.status.code)"
        case .continued(let offset, let total): "continues after \(offset)\(total.map { " of \($0)" } ?? "") bytes"
        case .uploadProgress(let progress): "has sent \(progress.words)"
        case .downloadProgress(let progress): "has received \(progress.words)"
        case .ended(.succeeded, let metrics): "ended\(metrics.words)"
        case .ended(.cancelled, _): "was cancelled"
        case .ended(.failed(let error), _): "failed: \(SessionError.outline(of: error))"
        }
    }
}

extension TransferProgress {
    fileprivate var words: String {
        "\(completedBytes)\(totalBytes.map { " of \($0)" } ?? "") bytes"
    }
}
