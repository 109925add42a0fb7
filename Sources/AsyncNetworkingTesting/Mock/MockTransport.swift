// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
public import HTTPTypes

/// A transport without a network, whose responses come from a function.
///
/// ```swift
/// let transport = MockTransport { request in
///     request.url.path == "/user" ? .json(#"{"name": "Ada"}"#) : .status(.notFound)
/// }
/// ```
///
/// The transport does not handle cookies and does not answer authentication challenges;
/// `Request.transportAuthentication` contains the authentication requested from it.
///
/// The complete body of a request is read before the function is called. Cancelling the task ends the pauses of a
/// response, and the function if it supports cancellation. ``shutdown()`` ends a response that hangs, and any other at
/// its next step.
public final class MockTransport: Transport {
    private let handler: @Sendable (ReceivedRequest) async throws -> MockResponse
    private let clock: any Clock<Duration>
    private let state = Observed(State())

    /// Creates a transport that calls `handler` for its responses.
    ///
    /// - Parameters:
    ///   - clock: The clock for the pauses of responses; `ContinuousClock` by default.
    ///   - handler: Returns the response for a request; an error that it throws fails the exchange.
    public init(
        clock: any Clock<Duration> = ContinuousClock(),
        _ handler: @escaping @Sendable (Request) async throws -> MockResponse
    ) {
        self.clock = clock
        self.handler = { try await handler($0.request) }
    }

    /// Creates a transport that returns the given responses in turn, and then repeats the last one.
    public convenience init(_ first: MockResponse, _ others: MockResponse...) {
        let responses = [first] + others
        let next = Observed(0)
        self.init { _ in
            next.update { index in
                defer { index = min(index + 1, responses.count - 1) }
                return responses[index]
            }
        }
    }

    /// Creates a transport that responds like a ``StubServer`` with a script, as far as that is possible without a
    /// connection: raw bytes before a reply, paces set by an action, and cuts fail.
    public init(script: Script, clock: any Clock<Duration> = ContinuousClock()) {
        self.clock = clock
        handler = { MockResponse(script, answering: RecordedRequest($0)) }
    }

    /// The requests received so far, with their bodies.
    public var requests: [ReceivedRequest] { state.value.requests }

    /// Waits until at least `count` requests were received, and returns all of them.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    @discardableResult
    public func requests(count: Int) async throws -> [ReceivedRequest] {
        try await state.wait { $0.requests.count >= count }
        return requests
    }

    /// A request and its complete body.
    public struct ReceivedRequest: Sendable {
        /// The request as passed to the transport.
        public let request: Request
        /// The complete body of the request.
        public let body: Data
        /// The trailer fields of the request; empty if it has no trailers.
        public let trailers: HTTPFields
    }

    // MARK: Transport

    /// Performs one exchange, whose response comes from the function or script.
    public func perform(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try Task.checkCancellation()
        try checkRunning()
        let exchange = MockExchange(transport: self, request: request, events: events)
        defer { exchange.finish() }
        let received = try await exchange.receiveRequest()
        state.update { $0.requests.append(received) }
        exchange.begin(try await handler(received))
        let head = try await exchange.nextHead()
        switch delivery {
        case .streamed:
            try await body(head, ResponseBody(source: exchange))
        case .collected(let limit):
            let data = try await exchange.collect(upTo: limit)
            try await body(head, ResponseBody(data, ending: exchange.ending ?? ResponseEnding()))
        }
    }

    /// Ends exchanges that hang, and all others at their next step, with `TransportError.Reason.shutDown`.
    public func shutdown() async {
        state.update { $0.isShutDown = true }
    }

    // MARK: Used by exchanges

    /// Throws if the transport was shut down.
    func checkRunning() throws(TransportError) {
        if state.value.isShutDown { throw TransportError(.shutDown) }
    }

    /// Waits until the transport is shut down and throws that error; throws `CancellationError` if the task is
    /// cancelled.
    func hang() async throws {
        try await state.wait { $0.isShutDown }
        throw TransportError(.shutDown)
    }

    /// Waits for a duration on the transport's clock.
    func pause(_ duration: Duration) async throws {
        try await clock.sleep(for: duration)
    }

    private struct State {
        var requests: [ReceivedRequest] = []
        var isShutDown = false
    }
}
