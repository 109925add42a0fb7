// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Synchronization

/// A printer of messages about a job on standard error: immediately during the job's turn, otherwise deferred until
/// then.
final class Narrator: Sendable {
    /// The narrator of the job that the current task performs.
    @TaskLocal static var current: Narrator?

    private let console: Console
    private let isVerbose: Bool
    private let state: Mutex<State>

    private struct State {
        var isLive: Bool
        var waiting = ""
        var urls: [URL] = []
    }

    init(_ console: Console, isVerbose: Bool, isLive: Bool, url: URL) {
        self.console = console
        self.isVerbose = isVerbose
        state = Mutex(State(isLive: isLive, urls: [url]))
    }

    /// The requested URLs: that of the job, then those of redirects.
    var urls: [URL] { state.withLock { $0.urls } }

    /// Prints whole lines.
    func tell(_ text: String) {
        let isLive = state.withLock { state in
            if !state.isLive { state.waiting += text }
            return state.isLive
        }
        if isLive { console.print(text) }
    }

    /// Prints the deferred messages, and later ones immediately.
    func goLive() {
        let waiting = state.withLock { state in
            state.isLive = true
            defer { state.waiting = "" }
            return state.waiting
        }
        if !waiting.isEmpty { console.print(waiting) }
    }

    /// Prints a request head, without the fields that the library adds.
    func say(request: Request) {
        guard isVerbose else { return }
        tell(HeadText.of(request).prefixed("> "))
    }

    /// Prints a response head.
    func say(head: ResponseHead) {
        guard isVerbose else { return }
        tell(HeadText.of(head).prefixed("< "))
    }

    /// Prints trailer fields.
    func say(trailers: HTTPFields) {
        guard isVerbose, !trailers.isEmpty else { return }
        tell(HeadText.of(trailers).prefixed("< "))
    }

    /// Prints the closure of a WebSocket connection.
    func say(closure: WebSocketClosure) {
        guard isVerbose else { return }
        tell("* closed with \(closure.code.map { "code \($0)" } ?? "no code") \(closure.reason.printable)\n")
    }

    /// Prints a redirect.
    func say(redirection: RedirectPolicy.Redirection) {
        state.withLock { $0.urls.append(redirection.proposed.url) }
        say(head: redirection.head)
        say(request: redirection.proposed)
    }
}
