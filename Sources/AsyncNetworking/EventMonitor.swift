// SPDX-License-Identifier: MIT

public import ANHTTP

// The events of one request, as a tree. `*` marks an event that occurs any number of times, `?` one that may be
// missing:
//
//     began
//     ├── exchange(.started)           *  the first request, or one after a redirect, a retry or a challenge
//     │   ├── exchange(.informational) *
//     │   ├── exchange(.uploadProgress) *
//     │   ├── exchange(.head)          ?
//     │   ├── exchange(.downloadProgress) *
//     │   └── exchange(.finished)      ?  missing if nothing could be sent
//     ├── refreshingToken              *  before an exchange
//     ├── answeringChallenge           *  between two exchanges
//     ├── waitingForConnectivity       *  between two exchanges
//     ├── redirected                   *  between two exchanges
//     ├── retrying                     *  between two attempts
//     └── ended

/// An event in the life of a session's request, which the session passes to each ``EventMonitor``.
///
/// | event | when |
/// |---|---|
/// | ``began`` | first |
/// | ``exchange(_:)`` | during each exchange, from `started` to `finished` |
/// | ``redirected(by:to:)`` | after an exchange answered by a redirect that is followed |
/// | ``refreshingToken`` | before waiting for an ``Authenticator`` to refresh its token |
/// | ``answeringChallenge(of:)`` | after an exchange that is answered by a challenge for which there is a credential |
/// | ``waitingForConnectivity(_:)`` | after an exchange that failed because there is no route, before waiting for one |
/// | ``retrying(after:)`` | after an attempt that will be retried, before the wait |
/// | ``ended(_:)`` | last, in every case |
///
/// A request that an interceptor or the response cache answers without the network has no exchange. A download that
/// needs several requests has the events of all between ``began`` and ``ended(_:)``, an event source that reconnects
/// both for each. The validation of a cached response in the background has no events.
@nonexhaustive
public enum RequestEvent: Sendable {
    /// The request begins, before interceptors receive it; always the first event. A task begins its request when it
    /// first runs, not when it is created.
    case began
    /// An event of one exchange with a server; see ``ANHTTP/TransferEvent``. A request has a further exchange for each
    /// redirect, answered challenge, token refreshed after a 401, wait for a route, and retry.
    case exchange(TransferEvent)
    /// A redirect, the response with the head `by`, is followed: `to` is sent next. `to` is the request that
    /// ``RedirectPolicy/decision`` returned or, without one, that the policy proposed, before credentials are added.
    case redirected(by: ResponseHead, to: Request)
    /// The request needs a new bearer token, before it is sent or because the server answered the last one with 401,
    /// and waits for the ``Authenticator`` to refresh it. The event is also reported, but without a wait, if another
    /// request has refreshed the token since this one was sent.
    case refreshingToken
    /// There is a credential for this protection space, and the request is sent again with it; if its body is not
    /// replayable, it fails instead. Not reported for credentials that are sent without waiting for a challenge: one
    /// that names a single scheme, and one that a server or proxy of this session has accepted before.
    case answeringChallenge(of: ProtectionSpace)
    /// The request failed with this error because there is no route, and is sent again when there is one, unless
    /// ``ANHTTP/Timeouts/connectivity``, `Request.timeout` or ``RetryPolicy/deadline`` expires before.
    case waitingForConnectivity(TransportError)
    /// This attempt failed, and the request is sent again after its ``ANHTTP/RetryHistory/Attempt/wait``.
    case retrying(after: RetryHistory.Attempt)
    /// The request ended; always the last event. The result covers receiving the response and, if it is streamed, the
    /// closure that reads it.
    ///
    /// A failure after that, such as of the caller's serializer or of moving a downloaded file, counts as success. The
    /// error is not converted yet: errors of lower layers, such as ``ANHTTP/TransportError``, are not wrapped in a
    /// ``SessionError``, and a request that the manager cancels may fail with ``ANHTTP/TransportError/Reason/shutDown``
    /// instead of `CancellationError`.
    case ended(Result<Void, any Error>)
}

/// A receiver of the events of a session's requests, for logs, metrics and traces. It takes effect as one of the
/// ``SessionConfiguration/eventMonitors``.
///
/// ```swift
/// struct RequestLog: EventMonitor {
///     func receive(_ event: RequestEvent, of task: AnyTransferTask) {
///         print(task, event)
///     }
/// }
/// ```
///
/// The events of one request arrive in order and one at a time, unless an interceptor sends requests concurrently.
/// Events of different requests are interleaved, and `task` identifies the request. Events are delivered synchronously on the thread where they occur, often the
/// network thread, so a monitor must not block. The session keeps its monitors as long as it exists; without monitors
/// it creates no events.
public protocol EventMonitor: Sendable {
    /// Receives an event of a task's request.
    ///
    /// Called synchronously on the thread where the event occurs, often the network thread, so it must return
    /// immediately. Calls for different requests may overlap; calls for one request do not, unless an interceptor sends
    /// requests concurrently.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - task: The request's task, whose ``AnyTransferTask/id`` distinguishes requests.
    func receive(_ event: RequestEvent, of task: AnyTransferTask)
}

/// Forwards the events of one request to the monitors of its session.
final class CallMonitor: TransferEventSink {
    private let task: AnyTransferTask
    private let monitors: [any EventMonitor]
    /// A further receiver of the events of exchanges.
    private let sink: (any TransferEventSink)?

    init(_ task: AnyTransferTask, monitors: [any EventMonitor], sink: (any TransferEventSink)?) {
        self.task = task
        self.monitors = monitors
        self.sink = sink
    }

    func receive(_ event: TransferEvent) {
        sink?.receive(event)
        receive(.exchange(event))
    }

    func receive(_ event: RequestEvent) {
        for monitor in monitors { monitor.receive(event, of: task) }
    }
}

extension RequestEvent: CustomStringConvertible {
    /// The event as text for a log line, without header fields, bodies or the secrets of URLs. The text of an error is
    /// that of its own description: for a rejected response it includes the beginning of the body, which may be secret.
    public var description: String { words.printable }

    private var words: String {
        switch self {
        case .began: "began"
        case .exchange(.started(let request)): "sends \(request)"
        case .exchange(.informational(let head)): "received an interim \(head.status.code)"
        case .exchange(.head(let head)): "received \(head.status.code) over \(head.version)"
        case .exchange(.uploadProgress(let progress)): "sent \(progress.words)"
        case .exchange(.downloadProgress(let progress)): "received \(progress.words)"
        case .exchange(.finished(let metrics)): "exchange finished after \(metrics.total.rounded)"
        case .exchange: "exchange event"
        case .redirected(let head, let request): "is redirected by \(head.status.code) to \(request)"
        case .refreshingToken: "waits for a new token"
        case .answeringChallenge(let space): "answers a challenge by \(space)"
        case .waitingForConnectivity(let error): "waits for a route: \(error)"
        case .retrying(let attempt): "waits \(attempt.wait.rounded) for a retry, because of \(attempt.outcome)"
        case .ended(.success): "ended"
        case .ended(.failure(let error)): "failed: \(error)"
        }
    }
}

extension TransferProgress {
    fileprivate var words: String {
        "\(completedBytes)\(totalBytes.map { " of \($0)" } ?? "") bytes"
    }
}
