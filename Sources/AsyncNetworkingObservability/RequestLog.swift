// SPDX-License-Identifier: MIT

#if Observability
    public import AsyncNetworking
    public import Logging

    /// Writes a line for each call to a logger, without secrets.
    ///
    /// | level | line |
    /// |---|---|
    /// | `error` | a call that failed, or was answered with a status of 500 or above |
    /// | `warning` | a call that was answered with a status from 400 to 499, also if it failed for that reason |
    /// | `info` | another call that ended, also by cancellation |
    /// | `debug` | each exchange, redirect, retry and wait; the timeline of a failed call |
    ///
    /// All lines are written in the task that makes the call, so a task-local logger is that of the request.
    struct RequestLog: EventMonitor {
        /// The logger; `nil` for the task's.
        let logger: Logger?

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            switch event {
            case .ended(let outcome, let metrics):
                let logger = logger ?? Logger.current
                let level = outcome.level(metrics)
                guard logger.logLevel <= level else { return }
                logger.log(
                    level: level, "\(task.line) \(outcome.words(metrics))", metadata: task.metadata(outcome, metrics))
                guard case .failed(let error as SessionError) = outcome, error.hasTimeline else { return }
                logger.debug("\(task.line) \(error.timeline)", metadata: task.metadata)
            case .exchange(_, .started(let request)):
                note(task) { "sends \(request.method.rawValue) \(request.urlWithoutSecrets)" }
            case .redirected(let head, let request):
                note(task) {
                    "is redirected by \(head.status.code) to \(request.urlWithoutSecrets)"
                }
            case .answeringChallenge: note(task) { "answers a challenge" }
            case .refreshingToken: note(task) { "waits for a new token" }
            case .retrying(let attempt):
                note(task) { "waits \(attempt.wait.forPeople) for a retry, because of \(attempt.reason)" }
            case .waitingForConnectivity(let error):
                note(task) { "waits for a route, because of \(error.label.rawValue)" }
            default: break
            }
        }

        private func note(_ task: AnySessionTask, _ text: () -> String) {
            let logger = logger ?? Logger.current
            guard logger.logLevel <= .debug else { return }
            logger.debug("\(task.line) \(text())", metadata: task.metadata)
        }
    }

    extension SessionConfiguration {
        /// Writes a line for each call to a logger, without secrets.
        ///
        /// The line is at level `error` for a call that failed or has a status of 500 or above, `warning` for a status of
        /// 400 or above, and `info` for others, also for one that was cancelled. A call that failed because of its status
        /// is at the level `warning` if that is from 400 to 499. Exchanges, redirects, retries and waits are at `debug`,
        /// and so is the ``/AsyncNetworking/SessionError/timeline`` of a failure. The line of a call has this metadata:
        ///
        /// | key | value |
        /// |---|---|
        /// | `http.call` | the ``/AsyncNetworking/AnySessionTask/id`` of the task, on all lines of a call |
        /// | `http.method` | the method |
        /// | `http.url` | the URL, without user information, query values and fragment |
        /// | `http.route` | the ``ANHTTP/Request/routeTemplate``, if it was set |
        /// | `http.status` | the status, if there was a response |
        /// | `http.error` | the ``/AsyncNetworking/SessionError/label`` of the error, if the call failed |
        /// | `http.duration_ms` | the time of the whole call in milliseconds, with three decimals |
        /// | `http.sent_bytes`, `http.received_bytes` | the bytes of all bodies |
        /// | `http.attempts`, `http.exchanges` | the number of attempts, and of exchanges with servers |
        /// | `http.source` | the ``/ANHTTP/ResponseSource``, if there was a response |
        ///
        /// - Parameter logger: The logger; `nil`, the default, for `Logger.current`, which is that of the task that makes
        ///   the request, as set by `withLogger(_:_:)`.
        public mutating func logRequests(to logger: Logger? = nil) {
            eventMonitors.append(RequestLog(logger: logger))
        }
    }

    extension TaskOutcome {
        fileprivate func level(_ metrics: CallMetrics) -> Logger.Level {
            switch self {
            case .cancelled: return .info
            case .failed(let error):
                // The rejected response may be another one, such as that to a request for a token.
                let isAnswer = ErrorLabel(error) == .statusRejected && 400..<500 ~= metrics.statusCode ?? 0
                return isAnswer ? .warning : .error
            case .succeeded:
                switch metrics.statusCode ?? 0 {
                case 500...: return .error
                case 400...: return .warning
                default: return .info
                }
            }
        }

        fileprivate func words(_ metrics: CallMetrics) -> String {
            let time = metrics.duration.forPeople
            switch self {
            case .cancelled: return "was cancelled after \(time)"
            case .failed(let error): return "failed with \(ErrorLabel(error).rawValue) after \(time)"
            case .succeeded: return "ended with \(metrics.statusCode ?? 0) after \(time)"
            }
        }
    }

    extension SessionError {
        /// Whether the timeline has more than the label and a description.
        fileprivate var hasTimeline: Bool { transport != nil || rejection != nil }
    }

    extension AnySessionTask {
        /// The method and the URL without secrets; the identifier for a task without a request.
        fileprivate var line: String {
            request.map { "\($0.method.rawValue) \($0.urlWithoutSecrets)" } ?? "#\(id)"
        }

        fileprivate var metadata: Logger.Metadata { ["http.call": "\(id)"] }

        fileprivate func metadata(_ outcome: TaskOutcome, _ metrics: CallMetrics) -> Logger.Metadata {
            var metadata = metadata
            if let request {
                metadata["http.method"] = "\(request.method.rawValue)"
                metadata["http.url"] = "\(request.urlWithoutSecrets)"
                if let route = request.routeTemplate { metadata["http.route"] = "\(route)" }
            }
            if let status = metrics.statusCode { metadata["http.status"] = "\(status)" }
            if case .failed(let error) = outcome { metadata["http.error"] = "\(ErrorLabel(error).rawValue)" }
            let milliseconds = (metrics.duration / .microseconds(1)).rounded() / 1_000
            metadata["http.duration_ms"] = "\(milliseconds)"
            metadata["http.sent_bytes"] = "\(metrics.requestBodyBytes)"
            metadata["http.received_bytes"] = "\(metrics.responseBodyBytes)"
            metadata["http.attempts"] = "\(metrics.retryCount + 1)"
            metadata["http.exchanges"] = "\(metrics.exchangeCount)"
            if let source = metrics.source { metadata["http.source"] = "\(source.rawValue)" }
            return metadata
        }
    }
#endif
