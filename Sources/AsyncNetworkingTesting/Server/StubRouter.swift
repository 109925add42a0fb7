// SPDX-License-Identifier: MIT

import ANSystem

/// Chooses the script for a request: the queue first, then the route with its method, then the one for any method.
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

    /// What the next connection meets.
    func takeGreeting() -> StubServer.Greeting {
        state.withLock { $0.greetings.isEmpty ? .serve : $0.greetings.removeFirst() }
    }

    /// The script, or the function that makes one, for a request whose head has arrived.
    func take(method: String, path: String) -> Choice {
        state.withLock { state in
            if !state.queue.isEmpty { return .script(state.queue.removeFirst()) }
            for key in [Key(method: method, path: path), Key(method: nil, path: path)] {
                if let choice = state.routes[key]?.take() { return choice }
            }
            return state.fallback.take()
        }
    }

    /// What answers a request.
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

/// Where requests for one path go.
enum StubRoute: Sendable {
    /// To these scripts in turn; the last one repeats.
    case scripts([Script])
    /// To a function.
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
