// SPDX-License-Identifier: MIT

#if Observability
    import ANSystem
    public import AsyncNetworking
    import FoundationEssentials
    import HTTPTypes
    public import Tracing

    /// Makes a span for each call, and a child span for each of its exchanges.
    ///
    /// A call's span begins and ends with its events ``TaskEvent/began`` and ``TaskEvent/ended(_:_:)``, in the task that
    /// makes the call. An exchange's begins in an interceptor, which adds its context to the request. It ends when the
    /// call goes on or ends, which tells whether it failed, but with the time at which the transport reported its end.
    final class RequestTraces<Tracing: Tracer>: EventMonitor, Interceptor {
        private let tracer: Tracing
        /// The open spans of each call, by its task. Guarded by a lock, because the end of an exchange is reported on the
        /// network thread.
        private let open = Lock([UInt64: OpenCall]())

        private struct OpenCall: Sendable {
            let span: Tracing.Span
            /// The exchanges that have not ended, in the order in which they began.
            var exchanges: [OpenExchange] = []
            var exchangeCount = 0
        }

        private struct OpenExchange: Sendable {
            let number: Int
            let span: Tracing.Span
            /// Whether its response was returned. The call goes on after it.
            var hasResponse = false
            /// The time of the end, and the address of the server; `nil` before it. They become a part of the span in
            /// the task of the call, because changes of a span's attributes on two threads could replace each other.
            var end: DefaultTracerClock.Timestamp?
            var peer: SocketAddress?
        }

        init(_ tracer: Tracing) {
            self.tracer = tracer
        }

        // MARK: Calls

        func receive(_ event: TaskEvent, of task: AnyTransferTask) {
            switch event {
            case .began: begin(task)
            case .exchange(.finished(let metrics)): finishExchange(metrics, of: task.id)
            case .redirected, .answeringChallenge: endExchanges(of: task.id)
            case .retrying(let attempt):
                endExchanges(of: task.id, failing: attempt.label)
                addEvent("http.retry", of: task.id, [("wait_ms", attempt.wait)])
            case .waitingForConnectivity(let error):
                endExchanges(of: task.id, failing: error.label)
                addEvent("http.waiting_for_connectivity", of: task.id, [])
            case .ended(let outcome, let metrics): end(task, outcome, metrics)
            default: break
            }
        }

        private func begin(_ task: AnyTransferTask) {
            guard let request = task.request else { return }
            let span = tracer.startSpan(request.spanName, ofKind: .client)
            span.attributes.set(request)
            if let route = request.routeTemplate { span.attributes["url.template"] = route }
            open.withLock { $0[task.id] = OpenCall(span: span) }
        }

        private func end(_ task: AnyTransferTask, _ outcome: TaskOutcome, _ metrics: CallMetrics) {
            var failure: ErrorLabel?
            if case .failed(let error) = outcome, (error as? SessionError)?.transport != nil {
                failure = ErrorLabel(error)
            }
            if case .cancelled = outcome { failure = .cancelled }
            endExchanges(of: task.id, failing: failure)
            guard let call = open.withLock({ $0.removeValue(forKey: task.id) }) else { return }
            let span = call.span
            if let status = metrics.statusCode { span.attributes["http.response.status_code"] = status }
            if metrics.exchangeCount > 1 { span.attributes["http.request.resend_count"] = metrics.exchangeCount - 1 }
            if let type = outcome.errorType(metrics) { span.fail(type) }
            span.end()
        }

        private func addEvent(_ name: String, of id: UInt64, _ durations: [(String, Duration)]) {
            guard let span = open.withLock({ $0[id]?.span }) else { return }
            var event = SpanEvent(name: name)
            for (key, duration) in durations { event.attributes[key] = Int(duration / .milliseconds(1)) }
            span.addEvent(event)
        }

        // MARK: Exchanges

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            endExchanges(of: next.taskID) { $0.hasResponse }
            guard let (parent, count) = parent(of: next.taskID) else { return try await next(request) }
            let span = tracer.startSpan(request.spanName, context: parent, ofKind: .client)
            span.attributes.set(request)
            if count > 0 { span.attributes["http.request.resend_count"] = count }
            var request = request
            tracer.inject(span.context, into: &request.headers, using: FieldInjector())
            open.withLock { $0[next.taskID]?.exchanges.append(OpenExchange(number: count, span: span)) }
            do {
                let response = try await next(request)
                let status = response.head.status.code
                span.attributes["http.response.status_code"] = status
                span.attributes["network.protocol.version"] = response.head.version.number
                if status >= 400 { span.fail("\(status)") }
                open.withLock { open in
                    guard let index = open[next.taskID]?.exchanges.firstIndex(where: { $0.number == count }) else {
                        return
                    }
                    open[next.taskID]?.exchanges[index].hasResponse = true
                }
                return response
            } catch {
                endExchanges(of: next.taskID, failing: ErrorLabel(error)) { $0.number == count }
                throw error
            }
        }

        /// The context of a call's span, and the number of exchanges before this one.
        private func parent(of id: UInt64) -> (ServiceContext, Int)? {
            open.withLock { open in
                guard let call = open[id] else { return nil }
                open[id]?.exchangeCount += 1
                return (call.span.context, call.exchangeCount)
            }
        }

        private func finishExchange(_ metrics: TransferMetrics, of id: UInt64) {
            let now = DefaultTracerClock.now
            open.withLock { open in
                // Of several, which an interceptor has sent concurrently, the first one that has not ended.
                guard let index = open[id]?.exchanges.firstIndex(where: { $0.end == nil }) else { return }
                open[id]?.exchanges[index].end = now
                open[id]?.exchanges[index].peer = metrics.remoteAddress
            }
        }

        /// Ends the exchanges of a call that a function selects.
        private func endExchanges(
            of id: UInt64, failing label: ErrorLabel? = nil, where isSelected: (OpenExchange) -> Bool = { _ in true }
        ) {
            let ended = open.withLock { open in
                let ended = open[id]?.exchanges.filter(isSelected) ?? []
                open[id]?.exchanges.removeAll(where: isSelected)
                return ended
            }
            for exchange in ended {
                if let peer = exchange.peer {
                    exchange.span.attributes["network.peer.address"] = peer.host
                    exchange.span.attributes["network.peer.port"] = peer.port
                }
                if let label { exchange.span.fail(label.rawValue) }
                exchange.span.end(at: exchange.end ?? DefaultTracerClock.now)
            }
        }
    }

    extension SessionConfiguration {
        /// Makes a client span for each call, and a child span for each of its exchanges, with the attributes of
        /// OpenTelemetry's conventions for HTTP clients.
        ///
        /// | attribute | call | exchange |
        /// |---|---|---|
        /// | `http.request.method`, `url.full`, `server.address`, `server.port` | of the request | of the request as it is sent |
        /// | `url.template` | the ``ANHTTP/Request/routeTemplate``, if it was set | |
        /// | `http.response.status_code` | of the last response | of the response |
        /// | `http.request.resend_count` | the number of exchanges after the first | the number of exchanges before it |
        /// | `error.type` | a status from 400 on, or the ``/ANHTTP/ErrorLabel`` of a failure | the same |
        /// | `network.protocol.version`, `network.peer.address`, `network.peer.port` | | of the connection |
        ///
        /// `url.full` has neither user information, query values nor a fragment. The tracer adds the context of each
        /// exchange's span to its header fields, such as `traceparent`. A span ends with the body of the response, not with
        /// its head, and that of a WebSocket connection with the connection; each connection of an event source is a call.
        /// The parent of a call's span is that of the task which makes the request.
        ///
        /// The spans of the exchanges begin inside the ``/AsyncNetworking/SessionConfiguration/attemptInterceptors`` that are set before.
        ///
        /// - Parameter tracer: The tracer; that of the `InstrumentationSystem` by default.
        public mutating func traceRequests(by tracer: any Tracer = InstrumentationSystem.tracer) {
            func install(_ tracer: some Tracer) {
                let traces = RequestTraces(tracer)
                eventMonitors.append(traces)
                attemptInterceptors.append(traces)
            }
            install(tracer)
        }
    }

    /// Sets the header fields of a request by which a server continues a trace.
    private struct FieldInjector: Injector {
        func inject(_ value: String, forKey key: String, into fields: inout HTTPFields) {
            if let name = HTTPField.Name(key) { fields[name] = value }
        }
    }

    extension Request {
        /// The method and, if it was set, the template of the path.
        fileprivate var spanName: String {
            let method = boundedMethod == "_OTHER" ? "HTTP" : boundedMethod
            return routeTemplate.map { "\(method) \($0)" } ?? method
        }
    }

    extension SpanAttributes {
        fileprivate mutating func set(_ request: Request) {
            self["http.request.method"] = request.boundedMethod
            self["url.full"] = request.urlWithoutSecrets
            self["server.address"] = request.url.host() ?? ""
            self["server.port"] = request.serverPort
        }
    }

    extension Span {
        /// Marks the span as that of a failure.
        fileprivate func fail(_ type: String) {
            attributes["error.type"] = type
            setStatus(SpanStatus(code: .error))
        }
    }
#endif
