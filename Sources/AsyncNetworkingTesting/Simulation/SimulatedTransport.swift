// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// How the network between a session and the servers of a ``SimulatedWorld`` behaves.
public struct SimulatedNetwork: Sendable {
    /// The time before the head of a response, an interim response, and each chunk of a body; from 0 to 50 ms by default.
    public var latency: ClosedRange<Duration> = .zero ... .milliseconds(50)
    /// The share of exchanges whose connection is lost, at a random place of the response; 0 by default.
    public var lossRate = 0.0

    /// Creates a network without losses.
    public init() {}
}

extension SimulatedWorld {
    /// Returns a transport whose responses come from a function, over a network that the seed determines.
    ///
    /// - Parameters:
    ///   - network: The latency and losses.
    ///   - handler: Returns the response for a request. It may be called for several requests concurrently.
    public func transport(
        _ network: SimulatedNetwork = SimulatedNetwork(),
        _ handler: @escaping @Sendable (Request) async throws -> MockResponse
    ) -> any Transport {
        SimulatedTransport(world: self) { [self] received in
            var response = try await handler(received.request)
            spread(&response, by: network)
            return response
        }
    }

    /// Adds pauses to a response, and perhaps a loss of the connection.
    private func spread(_ response: inout MockResponse, by network: SimulatedNetwork) {
        var steps = response.steps.flatMap { step in
            step.isTransferred ? [.pause(random(in: network.latency)), step] : [step]
        }
        if chance(network.lossRate), !steps.isEmpty {
            let index = random(in: 0...(steps.count - 1))
            var phase = TransportError.ConnectionLossPhase.beforeResponse
            for step in steps.prefix(index) {
                switch (step, phase) {
                case (.head(_, let fields), _):
                    phase = .inBody(received: 0, expected: fields[.contentLength].flatMap(Int64.init))
                case (.chunk(let data), .inBody(let received, let expected)):
                    phase = .inBody(received: received + Int64(data.count), expected: expected)
                default: break
                }
            }
            steps.replaceSubrange(index..., with: [.fail(TransportError(.connectionLost(phase)))])
        }
        response.steps = steps
    }
}

extension MockResponse.Step {
    /// Whether the step sends something over the network.
    fileprivate var isTransferred: Bool {
        switch self {
        case .informational, .head, .chunk: true
        case .pause, .wait, .hang, .fail: false
        }
    }
}

/// The transport of a simulated world: that of ``MockTransport``, whose exchanges are lanes of the diagram.
///
/// This is the only place where the simulation meets the protocol of transports.
package final class SimulatedTransport: Transport {
    private let world: SimulatedWorld
    private let mock: MockTransport
    private let connections: SimulatedConnections?
    private let observe: (@Sendable (Request, Step) -> Void)?

    package enum Step: Sendable {
        /// The exchange begins, the head of its response has arrived, the first chunk of its body, its end.
        case begin, head, body, end
    }

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - world: The world, whose clock the transport follows.
    ///   - reception: Returns how a server receives the body of a request; completely by default.
    ///   - connectionsPerHost: The number of exchanges with a host at a time, without those that may go on for long; `nil`
    ///     for no limit.
    ///   - observe: Called for the events of an exchange.
    ///   - handler: Returns the response for a request.
    package init(
        world: SimulatedWorld,
        reception: @escaping @Sendable (Request) -> MockTransport.Reception = { _ in .complete },
        connectionsPerHost: Int? = nil,
        observing observe: (@Sendable (Request, Step) -> Void)? = nil,
        _ handler: @escaping @Sendable (MockTransport.ReceivedRequest) async throws -> MockResponse
    ) {
        self.world = world
        self.observe = observe
        mock = MockTransport(receiving: handler, reception: reception, clock: world.clock)
        let connections = connectionsPerHost.map { SimulatedConnections(world, perHost: $0) }
        self.connections = connections
        world.register { [mock] in
            connections?.shutdown()
            await mock.shutdown()
        }
    }

    package func open(
        _ request: Request, delivery: BodyDelivery, reporting events: (any ExchangeEventSink)?
    ) async throws -> OpenResponse {
        let lane = "x\(world.nextExchange())"
        world.mark(lane, "●", "\(request.method) \(request.url.absoluteString)", isOpen: true)
        observe?(request, .begin)
        var admission: SimulatedConnections.Admission?
        do {
            var admitted = request
            admission = try await connections?.admit(&admitted)
            var response = try await mock.open(admitted, delivery: delivery, reporting: events)
            // A collected response has ended.
            if case .collected = delivery { admission.take()?.end() }
            observe?(request, .head)
            world.mark(lane, "○", "\(response.head.status.code)")
            response.body = ResponseBody(
                source: LaneBodySource(base: response.body, lane: lane, world: world) { [observe, admission] event in
                    if case .end = event { admission?.end() }
                    observe?(request, event)
                })
            return response
        } catch {
            admission?.end()
            observe?(request, .end)
            world.mark(lane, "✕", Self.text(error), isOpen: false)
            throw error
        }
    }

    package func shutdown() async {
        connections?.shutdown()
        await mock.shutdown()
    }

    package var features: TransportFeatures {
        var features = mock.features
        features.endExchanges = { [mock, connections] in
            connections?.endExchanges()
            await mock.features.endExchanges?()
        }
        return features
    }

    private static func text(_ error: any Error) -> String {
        // That of a request's body may have a path, which differs in each run.
        if case .requestBody? = (error as? TransportError)?.reason { return "requestBody" }
        if let error = error as? TransportError { return "\(error.reason)" }
        return "\(type(of: error))"
    }
}

/// The connections of a simulated transport: as many exchanges with a host as there may be connections, and others that
/// wait for one of them, in an order that the seed determines.
private final class SimulatedConnections: Sendable {
    private let world: SimulatedWorld
    private let perHost: Int
    private let state = Observed(State())

    private struct State {
        var used: [String: Int] = [:]
        var waiting: [(number: Int, host: String)] = []
        /// Those that have waited and have a connection.
        var admitted: Set<Int> = []
        var lastNumber = 0
        var acceptance = MockTransport.Acceptance.all
    }

    init(_ world: SimulatedWorld, perHost: Int) {
        (self.world, self.perHost) = (world, perHost)
    }

    /// The use of a connection.
    struct Admission: Sendable {
        fileprivate let connections: SimulatedConnections
        fileprivate let host: String

        func end() { connections.release(host) }
    }

    /// Waits for a connection, within the time limit of the request, which is reduced; returns `nil` for an exchange that
    /// may go on for long.
    func admit(_ request: inout Request) async throws -> Admission? {
        guard request.webSocketOptions == nil, request.headers[.accept] != "text/event-stream",
            let host = request.url.host()
        else { return nil }
        let number: Int? = state.update { state in
            guard state.used[host, default: 0] >= perHost else {
                state.used[host, default: 0] += 1
                return nil
            }
            state.lastNumber += 1
            state.waiting.append((state.lastNumber, host))
            return state.lastNumber
        }
        guard let number else { return Admission(connections: self, host: host) }
        let (begin, cleansUp) = (world.clock.now, request.cleansUp)
        do {
            try await MockTimeLimits(request, clock: world.clock).wait(in: .queue, isActive: true) { [state] in
                try await state.wait {
                    $0.admitted.contains(number) || !$0.acceptance.accepts(cleaningUp: cleansUp)
                }
                if !state.value.acceptance.accepts(cleaningUp: cleansUp) { throw TransportError(.shutDown) }
            }
        } catch {
            let wasAdmitted = state.update { state in
                state.waiting.removeAll { $0.number == number }
                return state.admitted.remove(number) != nil
            }
            if wasAdmitted { release(host) }
            throw error
        }
        state.update { _ = $0.admitted.remove(number) }
        let waited = begin.duration(to: world.clock.now)
        request.changeOptions { options in
            options.timeouts.total = options.timeouts.total.map { max(.nanoseconds(1), $0 - waited) }
        }
        return Admission(connections: self, host: host)
    }

    func shutdown() { state.update { $0.acceptance = .none } }

    func endExchanges() { state.update { $0.acceptance.endExchanges() } }

    private func release(_ host: String) {
        let numbers = state.value.waiting.filter { $0.host == host }.map(\.number)
        guard !numbers.isEmpty else { return state.update { $0.used[host, default: 0] -= 1 } }
        let next = numbers[world.random(in: 0...numbers.count - 1)]
        state.update { state in
            state.waiting.removeAll { $0.number == next }
            state.admitted.insert(next)
        }
    }
}

/// The body of a response, whose end is a mark in the lane of its exchange.
private final class LaneBodySource: ResponseBodySource {
    private let base: ResponseBody
    private let lane: String
    private let world: SimulatedWorld
    private let observe: @Sendable (SimulatedTransport.Step) -> Void
    private let state = Lock(State())

    private struct State {
        var hasBody = false
        var isClosed = false
    }

    init(
        base: ResponseBody, lane: String, world: SimulatedWorld,
        observing observe: @escaping @Sendable (SimulatedTransport.Step) -> Void
    ) {
        self.base = base
        self.lane = lane
        self.world = world
        self.observe = observe
    }

    func next() async throws -> Data? {
        let chunk = try await base.next()
        if chunk != nil { report(.body, \.hasBody) }
        return chunk
    }

    func collect(upTo limit: Int) async throws -> Data {
        let data = try await base.collect(upTo: limit)
        if !data.isEmpty { report(.body, \.hasBody) }
        return data
    }

    var ending: ResponseEnding? { base.ending }

    func cancel() { base.cancel() }

    func close() async {
        await base.close()
        report(.end, \.isClosed)
    }

    /// Reports an event, if it is the first one of its kind.
    private func report(
        _ event: SimulatedTransport.Step, _ flag: any WritableKeyPath<State, Bool> & Sendable
    ) {
        let isFirst = state.withLock { state in
            defer { state[keyPath: flag] = true }
            return !state[keyPath: flag]
        }
        guard isFirst else { return }
        if case .end = event { world.mark(lane, "|", "ended", isOpen: false) }
        observe(event)
    }
}
