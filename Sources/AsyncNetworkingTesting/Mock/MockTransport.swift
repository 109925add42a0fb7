// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
public import HTTPTypes

/// A transport without a network: a function answers the requests.
///
/// ```swift
/// let transport = MockTransport { request in
///     request.url.path == "/user" ? .json(#"{"name": "Ada"}"#) : .status(.notFound)
/// }
/// ```
///
/// It keeps no cookies and answers no challenges, which are a transport's: what it would be told to answer stands in
/// `Request.transportAuthentication`.
///
/// It reads each request's body to its end before it asks for the answer. Cancelling ends the pauses of a response, and
/// the function too where that heeds cancellation; ``shutdown()`` ends a response that hangs, and every other at its next step.
public final class MockTransport: Transport {
    private let handler: @Sendable (ReceivedRequest) async throws -> MockResponse
    private let clock: any Clock<Duration>
    private let state = Observed(State())

    /// Creates a transport that asks `handler` for its answers.
    public init(
        clock: any Clock<Duration> = ContinuousClock(),
        _ handler: @escaping @Sendable (Request) async throws -> MockResponse
    ) {
        self.clock = clock
        self.handler = { try await handler($0.request) }
    }

    /// Creates a transport that answers by these responses in turn, the last one from then on.
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

    /// Creates a transport that answers as a ``StubServer`` with this script would, as far as that is possible without
    /// bytes on a wire: raw bytes, paces of heads and cuts fail.
    public init(script: Script, clock: any Clock<Duration> = ContinuousClock()) {
        self.clock = clock
        handler = { MockResponse(script, answering: RecordedRequest($0)) }
    }

    /// The requests so far, with their bodies.
    public var requests: [ReceivedRequest] { state.value.requests }

    /// Waits until so many requests have come, and returns all that have.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    @discardableResult
    public func requests(count: Int) async throws -> [ReceivedRequest] {
        try await state.wait { $0.requests.count >= count }
        return requests
    }

    /// A request whose body was read to its end.
    public struct ReceivedRequest: Sendable {
        /// The request.
        public let request: Request
        /// Its body.
        public let body: Data
        /// Its trailer fields.
        public let trailers: HTTPFields
    }

    // MARK: Transport

    /// Performs one exchange with the function that answers.
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

    /// Ends the exchanges that hang, and every other at its next step.
    public func shutdown() async {
        state.update { $0.isShutDown = true }
    }

    // MARK: For exchanges

    /// Throws when the transport was shut down.
    func checkRunning() throws(TransportError) {
        if state.value.isShutDown { throw .shutDown }
    }

    /// Waits until the transport is shut down, and then throws that; or throws `CancellationError`.
    func hang() async throws {
        try await state.wait { $0.isShutDown }
        throw TransportError.shutDown
    }

    /// Waits by the clock.
    func pause(_ duration: Duration) async throws {
        try await clock.sleep(for: duration)
    }

    private struct State {
        var requests: [ReceivedRequest] = []
        var isShutDown = false
    }
}
