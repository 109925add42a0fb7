// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// A server behind a mock transport, and the cache of its clients.
final class Origin: Sendable {
    private let state = Lock(State())
    let transport: MockTransport

    private struct State: Sendable {
        var seconds: Int64 = 784_111_777
        var fields: HTTPFields = [:]
        var notModified = false
        var body: @Sendable (Int) -> String = { "\($0)" }
        var custom: (@Sendable (Request, Int) -> MockResponse)?
        var gate: ScriptGate?
        var cache = ResponseCache.memory()
    }

    init() {
        let state = state
        let answer: @Sendable (MockTransport.ReceivedRequest) -> MockResponse = { received in
            let (request, number) = (received.request, received.number)
            let current = state.withLock(\.self)
            if let custom = current.custom { return custom(request, number) }
            if current.notModified { return .status(.notModified, headers: current.fields) }
            let body = request.method == .head ? "" : current.body(number)
            var response = MockResponse.data(Data(body.utf8), headers: current.fields)
            if let gate = current.gate { response.steps.insert(.wait(gate), at: 0) }
            return response
        }
        transport = MockTransport(receiving: answer, clock: ContinuousClock())
    }

    func manager(cached: Bool = true, _ configure: (inout SessionConfiguration) -> Void = { _ in }) -> SessionManager {
        let state = state
        var configuration = SessionConfiguration.on(transport) { _ in }
        configuration.now = { CacheTime(seconds: state.withLock { $0.seconds }) }
        if cached { configuration.cache = cache }
        configure(&configuration)
        return SessionManager(configuration)
    }

    var cache: ResponseCache {
        get { state.withLock { $0.cache } }
        set { state.withLock { $0.cache = newValue } }
    }
    var fields: HTTPFields {
        get { state.withLock { $0.fields } }
        set { state.withLock { $0.fields = newValue } }
    }
    var notModified: Bool {
        get { state.withLock { $0.notModified } }
        set { state.withLock { $0.notModified = newValue } }
    }
    var body: @Sendable (Int) -> String {
        get { state.withLock { $0.body } }
        set { state.withLock { $0.body = newValue } }
    }
    var requests: [Request] { transport.requests.map(\.request) }

    func respond(_ response: @escaping @Sendable (Request, Int) -> MockResponse) {
        state.withLock { $0.custom = response }
    }
    func advance(_ seconds: Int64) { state.withLock { $0.seconds += seconds } }
    func hold(at gate: ScriptGate) { state.withLock { $0.gate = gate } }

    /// Fetches a path, and returns `BODY STATUS SOURCE`.
    func get(_ path: String = "x", from manager: SessionManager, _ headers: HTTPFields = [:]) async throws -> String {
        let response = try await manager.data(for: try manager.request(.get, path, headers: headers))
        return "\(response.text) \(response.statusCode) \(response.metrics.source)"
    }
}
