// SPDX-License-Identifier: MIT

#if Observability
    public import AsyncNetworking
    public import CoreMetrics
    import ANSystem
    import FoundationEssentials
    import HTTPTypes

    /// Records the metrics of calls.
    final class RequestMetrics: EventMonitor {
        private let factory: any MetricsFactory
        /// The calls that have begun and not ended, by dimensions. Guarded by a lock, because calls end on any thread, and
        /// the meter has each number in turn.
        private let active = Lock([String: (count: Int, meter: Meter)]())

        init(factory: any MetricsFactory) { self.factory = factory }

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            switch event {
            case .began: countActive(task, 1)
            case .exchange(_, .finished(let metrics)):
                Timer(label: "http.client.request.time_in_queue", dimensions: task.dimensions, factory: factory)
                    .record(metrics.queued)
            case .ended(let outcome, let metrics):
                countActive(task, -1)
                record(outcome, metrics, of: task)
            default: break
            }
        }

        private func countActive(_ task: AnySessionTask, _ change: Int) {
            let dimensions = task.dimensions
            let key = dimensions.map(\.1).joined(separator: "\n")
            active.withLock { active in
                var entry =
                    active[key] ?? (
                        0, Meter(label: "http.client.active_requests", dimensions: dimensions, factory: factory)
                    )
                entry.count += change
                // Other sessions may count calls with the same dimensions.
                if change > 0 { entry.meter.increment() } else { entry.meter.decrement() }
                // A program may talk to any number of hosts.
                active[key] = entry.count == 0 ? nil : entry
            }
        }

        private func record(_ outcome: TaskOutcome, _ metrics: CallMetrics, of task: AnySessionTask) {
            let general = task.dimensions
            var dimensions = general
            if let status = metrics.statusCode { dimensions.append(("http.response.status_code", "\(status)")) }
            if let type = outcome.errorType(metrics) { dimensions.append(("error.type", type)) }
            if let version = metrics.httpVersion { dimensions.append(("network.protocol.version", version.number)) }
            Timer(label: "http.client.request.duration", dimensions: dimensions, factory: factory)
                .record(metrics.duration)
            Recorder(label: "http.client.request.body.size", dimensions: dimensions, factory: factory)
                .record(metrics.requestBodyBytes)
            Recorder(label: "http.client.response.body.size", dimensions: dimensions, factory: factory)
                .record(metrics.responseBodyBytes)
            if metrics.retryCount > 0 {
                Counter(label: "http.client.retries", dimensions: general, factory: factory)
                    .increment(by: metrics.retryCount)
            }
            if let source = metrics.source, source != .network {
                Counter(
                    label: "http.client.cache.results", dimensions: general + [("source", source.rawValue)],
                    factory: factory
                ).increment()
            }
        }
    }

    extension SessionConfiguration {
        /// Records the metrics of calls, by OpenTelemetry's conventions for HTTP clients.
        ///
        /// | metric | kind | value |
        /// |---|---|---|
        /// | `http.client.request.duration` | timer | the time of a whole call, with its retries, redirects and waits |
        /// | `http.client.active_requests` | meter | the number of calls that have begun and not ended |
        /// | `http.client.request.body.size`, `http.client.response.body.size` | recorder | the bytes of a call's bodies |
        /// | `http.client.request.time_in_queue` | timer | the time in which an exchange waited for a connection |
        /// | `http.client.retries` | counter | the number of retries |
        /// | `http.client.cache.results` | counter | the responses of the cache, with `source` as the ``/ANHTTP/ResponseSource`` |
        ///
        /// The dimensions are `http.request.method`, `server.address`, `server.port` and, if
        /// ``ANHTTP/Request/routeTemplate`` was set, `url.template`. Durations and sizes of bodies have further ones:
        /// `http.response.status_code`, `error.type`, which is the status from 400 on or the ``/AsyncNetworking/SessionError/label`` of a failure,
        /// and `network.protocol.version`. All are bounded, `server.address` by the number of hosts of the requests: no path, query or text of an error is among them, and an
        /// unknown method is `_OTHER`.
        ///
        /// - Parameter factory: The metrics backend; `MetricsSystem.factory` by default.
        public mutating func recordMetrics(by factory: any MetricsFactory = MetricsSystem.factory) {
            eventMonitors.append(RequestMetrics(factory: factory))
        }
    }

    extension SessionManager {
        /// Sets the meter `http.client.open_connections` to the numbers of connections, with the dimension
        /// `http.connection.state`, which is `active` or `idle`. A program calls it at intervals.
        ///
        /// Connections that have not carried a request, and those over QUIC, are not known. The meter has the numbers of one
        /// session: a program with several gives each its own factory, such as one that adds a dimension.
        ///
        /// - Parameter factory: The metrics backend; `MetricsSystem.factory` by default.
        public nonisolated func recordConnections(by factory: any MetricsFactory = MetricsSystem.factory) async {
            let connections = await snapshot().hosts.flatMap(\.connections)
            let idle = connections.count { $0.idle != nil }
            for (state, count) in [("active", connections.count - idle), ("idle", idle)] {
                let dimensions = [("http.connection.state", state)]
                Meter(label: "http.client.open_connections", dimensions: dimensions, factory: factory).set(count)
            }
        }
    }

    extension Request {
        /// The template of the request's path, such as `/users/{id}`, by which logs, metrics and traces group requests;
        /// `nil`, the default, for none. A program should have few of them, because a metrics backend keeps each.
        public var routeTemplate: String? {
            get { self[RouteTemplate.self] }
            set { self[RouteTemplate.self] = newValue }
        }

        private enum RouteTemplate: RequestAttribute {
            static var defaultValue: String? { nil }
        }
    }

    extension Request {
        /// The method, or `_OTHER` if it is not one of RFC 9110 §9, RFC 5789 and OpenTelemetry's conventions.
        var boundedMethod: String { Self.knownMethods.contains(method) ? method.rawValue : "_OTHER" }

        private static let knownMethods: Set<HTTPRequest.Method> = [
            .get, .head, .post, .put, .delete, .connect, .options, .trace, .patch,
        ]

        /// The URL without user information, query values and fragment.
        var urlWithoutSecrets: String { Redaction.standard.url(url.absoluteString) }

        /// The host of the URL, in one spelling.
        var serverAddress: String { HostName(url).zonedText }

        /// The port of the URL, or that of its scheme.
        var serverPort: Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
    }

    extension AnySessionTask {
        /// The dimensions of all metrics.
        fileprivate var dimensions: [(String, String)] {
            guard let request else { return [] }
            var dimensions = [
                ("http.request.method", request.boundedMethod), ("server.address", request.serverAddress),
                ("server.port", "\(request.serverPort)"),
            ]
            if let route = request.routeTemplate { dimensions.append(("url.template", route)) }
            return dimensions
        }
    }

    extension TaskOutcome {
        /// The value of `error.type`: the label of an error, or a status from 400 on; `nil` for a success.
        func errorType(_ metrics: CallMetrics) -> String? {
            let status = metrics.statusCode.flatMap { $0 >= 400 ? "\($0)" : nil }
            switch self {
            case .cancelled: return ErrorLabel.cancelled.rawValue
            case .failed(let error):
                let label = ErrorLabel(error)
                return label == .statusRejected ? status ?? label.rawValue : label.rawValue
            case .succeeded: return status
            }
        }
    }

    extension HTTPVersion {
        /// The number of the version, such as `1.1` or `2`.
        var number: String { String(rawValue.dropFirst("HTTP/".count)) }
    }

    extension Timer {
        fileprivate func record(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            let (nanoseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
            recordNanoseconds(overflow ? Int64.max : nanoseconds + attoseconds / 1_000_000_000)
        }
    }
#endif
