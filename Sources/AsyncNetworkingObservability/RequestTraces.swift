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
    /// makes the call. An exchange's begins in an interceptor, which adds its context to the request, and gives the
    /// request a number by which the events of the exchange are recognized, because exchanges may overlap. It ends when
    /// the call goes on or ends, but with the time at which the transport reported its end.
    final class RequestTraces<Tracing: Tracer>: EventMonitor, FieldPreservingInterceptor {
        private let tracer: Tracing
        /// The open spans of each call, by its task. Guarded by a lock, because the end of an exchange is reported on an
        /// event-loop thread.
        private let open = Lock([UInt64: OpenCall]())

        private struct OpenCall: Sendable {
            let span: Tracing.Span
            var exchanges = ObservedExchanges<OpenExchange>()
            var exchangeCount = 0
            /// The numbers of the spans of the exchanges, by their numbers in events.
            var spans: [Int: Int] = [:]
        }

        private struct OpenExchange: Sendable {
            let span: Tracing.Span
            /// Whether an exchange has begun; an interceptor may respond or fail without one.
            var hasBegun = false
            /// Whether there is no response, or its body was read.
            var isRead = false
            /// The failure of the exchange.
            var failure: ErrorLabel?
            /// The time of the end, and the address of the server; `nil` before it. They become a part of the span in
            /// the task of the call, because changes of a span's attributes on two threads could replace each other.
            var end: DefaultTracerClock.Timestamp?
            var peer: SocketAddress?
        }

        init(_ tracer: Tracing) {
            self.tracer = tracer
        }

        // MARK: Calls

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            switch event {
            case .began: begin(task)
            case .exchange(let number, .started(let request)):
                guard let span = request[SpanNumber.self] else { break }
                open.withLock { open in
                    open[task.id]?.spans[number] = span
                    open[task.id]?.exchanges.change(span) { $0.hasBegun = true }
                }
            case .exchange(let number, .finished(let metrics)): finishExchange(number, metrics, of: task.id)
            case .retrying(let attempt): addEvent("http.retry", of: task.id, [("wait_ms", attempt.wait)])
            case .waitingForConnectivity: addEvent("http.waiting_for_connectivity", of: task.id, [])
            case .ended(let outcome, let metrics): end(task, outcome, metrics)
            default: break
            }
        }

        private func begin(_ task: AnySessionTask) {
            guard let request = task.request else { return }
            let span = tracer.startSpan(request.spanName, ofKind: .client)
            span.attributes.set(request)
            if let route = request.routeTemplate { span.attributes["url.template"] = route }
            open.withLock { $0[task.id] = OpenCall(span: span) }
        }

        private func end(_ task: AnySessionTask, _ outcome: TaskOutcome, _ metrics: CallMetrics) {
            guard let call = open.withLock({ $0.removeValue(forKey: task.id) }) else { return }
            let isCancelled = if case .cancelled = outcome { true } else { false }
            for exchange in call.exchanges.all { end(exchange, failing: isCancelled ? .cancelled : nil) }
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

        /// Those of the trace.
        var addsFields: Bool { true }

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            guard let (parent, count) = parent(of: next.taskID) else { return try await next(request) }
            let span = tracer.startSpan(request.spanName, context: parent, ofKind: .client)
            span.attributes.set(request)
            if count > 0 { span.attributes["http.request.resend_count"] = count }
            var request = request
            tracer.inject(span.context, into: &request.headers, using: FieldInjector())
            request[SpanNumber.self] = count
            let over = open.withLock {
                $0[next.taskID]?.exchanges.begin(count, OpenExchange(span: span)) {
                    $0.end == nil ? .running : $0.isRead ? .over : .ended
                }
            }
            guard let over else {
                // The call has ended without this request.
                span.end()
                return try await next(request)
            }
            for exchange in over { end(exchange) }
            let taskID = next.taskID
            do {
                var response = try await next(request)
                let status = response.head.status.code
                span.attributes["http.response.status_code"] = status
                span.attributes["network.protocol.version"] = response.head.version.number
                if status >= 400 { span.fail("\(status)") }
                if response.body.isWhole {
                    noteRead(of: taskID, count, failing: nil)
                } else {
                    response.body = response.body.observed(end: { self.noteRead(of: taskID, count, failing: $0) })
                }
                return response
            } catch {
                noteRead(of: taskID, count, failing: error)
                throw error
            }
        }

        /// Notes that the body of a response was read, or that there is none.
        private func noteRead(of id: UInt64, _ number: Int, failing error: (any Error)?) {
            let now = DefaultTracerClock.now
            open.withLock { open in
                open[id]?.exchanges.change(number) { exchange in
                    exchange.isRead = true
                    if !exchange.hasBegun { exchange.end = exchange.end ?? now }
                    if let error, exchange.failure == nil { exchange.failure = ErrorLabel(error) }
                }
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

        private func finishExchange(_ number: Int, _ metrics: TransferMetrics, of id: UInt64) {
            let now = DefaultTracerClock.now
            open.withLock { open in
                guard let span = open[id]?.spans.removeValue(forKey: number) else { return }
                open[id]?.exchanges.change(span) { exchange in
                    (exchange.end, exchange.peer) = (now, metrics.remoteAddress)
                }
            }
        }

        /// Ends the span of an exchange.
        ///
        /// - Parameter label: The failure of one whose body was not read.
        private func end(_ exchange: OpenExchange, failing label: ErrorLabel? = nil) {
            if let peer = exchange.peer {
                exchange.span.attributes["network.peer.address"] = peer.host
                exchange.span.attributes["network.peer.port"] = peer.port
            }
            if let label = exchange.failure ?? (exchange.isRead ? nil : label) { exchange.span.fail(label.rawValue) }
            exchange.span.end(at: exchange.end ?? DefaultTracerClock.now)
        }
    }

    /// The number of the span of an exchange among those of its call.
    private enum SpanNumber: CallAttribute {
        static var defaultValue: Int? { nil }
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
        /// | `error.type` | a status from 400 on, or the ``/AsyncNetworking/SessionError/label`` of a failure | the same |
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
            self["server.address"] = request.serverAddress
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
