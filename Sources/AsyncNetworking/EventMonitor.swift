// SPDX-License-Identifier: MIT

public import ANHTTP

// The events of one request, indented by what contains what; `*` may come any number of times, `?` may be missing:
//
// began
// ├── exchange(.started)           *  the first one, that of a redirect, a retry or an answer to a challenge
// │   ├── exchange(.informational) *
// │   ├── exchange(.uploadProgress) *
// │   ├── exchange(.head)          ?
// │   ├── exchange(.downloadProgress) *
// │   └── exchange(.finished)      ?  missing where nothing could be sent
// ├── refreshingToken              *  before an exchange
// ├── answeringChallenge           *  between two exchanges
// ├── waitingForConnectivity       *  between two exchanges
// ├── redirected                   *  between two exchanges
// ├── retrying                     *  between two attempts
// └── ended

/// Something that happened to a request of a session.
///
/// | event | when |
/// |---|---|
/// | ``began`` | first |
/// | ``exchange(_:)`` | as often as something is sent, from `started` to `finished` |
/// | ``redirected(by:to:)`` | after the exchange that was answered by a redirect, if it is followed |
/// | ``refreshingToken`` | before the wait for an ``Authenticator``'s refresh |
/// | ``answeringChallenge(of:)`` | after an exchange that was refused for want of a credential, if there is one |
/// | ``waitingForConnectivity(_:)`` | after an exchange that found no route, before the wait for one |
/// | ``retrying(after:)`` | after an attempt that is followed by another one, before the wait |
/// | ``ended(_:)`` | last, whatever happened |
///
/// A request that an interceptor answers has no exchange.
@nonexhaustive
public enum RequestEvent: Sendable {
    /// The request was handed to the session.
    case began
    /// Something happened in an exchange.
    case exchange(TransferEvent)
    /// A redirect is followed.
    case redirected(by: ResponseHead, to: Request)
    /// The request waits for a new bearer token.
    case refreshingToken
    /// The request will be sent again with a credential, which this server or proxy wants.
    case answeringChallenge(of: ProtectionSpace)
    /// The request will be sent again when there is a route, for the want of which it failed.
    case waitingForConnectivity(TransportError)
    /// The request will be sent again, after this attempt and its wait.
    case retrying(after: RetryHistory.Attempt)
    /// The caller has its value, or the error that is the result.
    case ended(Result<Void, any Error>)
}

/// Told what happens to the requests of a session, for logs, measurements and traces.
///
/// ```swift
/// struct RequestLog: EventMonitor {
///     func receive(_ event: RequestEvent, of task: SessionTask) {
///         print("#\(task.id)", task.request, event)
///     }
/// }
/// ```
///
/// The events of one request come in their order and one at a time; those of several requests mix, and the
/// task tells them apart. An event arrives where it arises, many on the network's thread: a monitor must return at once.
/// Without a monitor no event is made.
public protocol EventMonitor: Sendable {
    /// Takes note of an event, without blocking.
    func receive(_ event: RequestEvent, of task: SessionTask)
}

/// Tells all monitors of a session what happens to one request.
final class CallMonitor: TransferEventSink {
    private let task: SessionTask
    private let monitors: [any EventMonitor]
    /// Whoever else wants to hear of the exchanges.
    private let sink: (any TransferEventSink)?

    init(_ task: SessionTask, monitors: [any EventMonitor], sink: (any TransferEventSink)?) {
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

extension Pipeline {
    /// Performs a call under the eyes of the session's monitors.
    @inline(never)
    func monitor<Value>(
        _ call: PipelineCall, of task: SessionTask, perform: (PipelineCall) async throws -> Value
    ) async throws -> Value {
        let monitor = CallMonitor(task, monitors: monitors, sink: call.events)
        var call = call
        call.events = monitor
        call.monitor = monitor
        monitor.receive(.began)
        do {
            let value = try await perform(call)
            monitor.receive(.ended(.success(())))
            return value
        } catch {
            monitor.receive(.ended(.failure(error)))
            throw error
        }
    }
}

extension RequestEvent: CustomStringConvertible {
    /// A line for a log, without secrets of URLs, header fields or bodies.
    public var description: String {
        switch self {
        case .began: "began"
        case .exchange(.started(let request)): "sends \(request)"
        case .exchange(.informational(let head)): "received an interim \(head.status.code)"
        case .exchange(.head(let head)): "received \(head.status.code) over \(head.version)"
        case .exchange(.uploadProgress(let progress)): "sent \(progress.words)"
        case .exchange(.downloadProgress(let progress)): "received \(progress.words)"
        case .exchange(.finished(let metrics)): "exchange finished after \(metrics.total)"
        case .exchange: "exchange event"
        case .redirected(let head, let request): "is redirected by \(head.status.code) to \(request)"
        case .refreshingToken: "waits for a new token"
        case .answeringChallenge(let space): "has a credential by \(space)"
        case .waitingForConnectivity(let error): "waits for a route: \(error)"
        case .retrying(let attempt): "waits \(attempt.wait) for a retry, because of \(attempt.outcome)"
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
