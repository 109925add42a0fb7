// SPDX-License-Identifier: MIT

import ANSystem

/// Selects the script for a request: from the queue, then from a route with the request's method, then from one for all
/// methods.
final class StubRouter: Sendable {
    private let state = Lock(State())

    func add(_ route: StubRoute, method: String?, path: String) {
        state.withLock { $0.routes[Key(method: method, path: path)] = route }
    }

    func setFallback(_ route: StubRoute) {
        state.withLock { $0.fallback = route }
    }

    func enqueue(_ scripts: [Script]) {
        state.withLock { $0.queue += scripts }
    }

    func enqueue(_ greetings: [StubServer.Greeting]) {
        state.withLock { $0.greetings += greetings }
    }

    /// Returns the greeting for the next connection.
    func takeGreeting() -> StubServer.Greeting {
        state.withLock { $0.greetings.isEmpty ? .serve : $0.greetings.removeFirst() }
    }

    /// Returns the script, or the function that creates it, for a request whose head has arrived.
    func take(method: String, path: String) -> Choice {
        state.withLock { state in
            if !state.queue.isEmpty { return .script(state.queue.removeFirst()) }
            for key in [Key(method: method, path: path), Key(method: nil, path: path)] {
                if let choice = state.routes[key]?.take() { return choice }
            }
            return state.fallback.take()
        }
    }

    /// The response to a request.
    enum Choice: Sendable {
        case script(Script)
        case handler(@Sendable (RecordedRequest) throws -> Script)
    }

    private struct Key: Hashable {
        let method: String?
        let path: String
    }

    private struct State {
        var routes: [Key: StubRoute] = [:]
        var queue: [Script] = []
        var greetings: [StubServer.Greeting] = []
        var fallback = StubRoute.handler { .text("No route for \($0.method) \($0.path)\n", status: 404) }
    }
}

/// The destination of requests for a path.
enum StubRoute: Sendable {
    /// The given scripts in turn; the last one is repeated.
    case scripts([Script])
    /// A function that returns a script.
    case handler(@Sendable (RecordedRequest) throws -> Script)

    fileprivate mutating func take() -> StubRouter.Choice {
        switch self {
        case .handler(let make): return .handler(make)
        case .scripts(var scripts):
            guard let first = scripts.first else { return .script(.status(404)) }
            if scripts.count > 1 {
                scripts.removeFirst()
                self = .scripts(scripts)
            }
            return .script(first)
        }
    }
}
