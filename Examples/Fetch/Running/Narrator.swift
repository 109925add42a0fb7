// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Synchronization

/// Tells what happens to one job on standard error: at once when it is the job's turn, later otherwise.
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

    /// The URLs that were asked for: the job's own, then those of redirects.
    var urls: [URL] { state.withLock { $0.urls } }

    /// Tells a text of whole lines.
    func tell(_ text: String) {
        let isLive = state.withLock { state in
            if !state.isLive { state.waiting += text }
            return state.isLive
        }
        if isLive { console.print(text) }
    }

    /// Tells what had to wait, and the rest at once from now on.
    func goLive() {
        let waiting = state.withLock { state in
            state.isLive = true
            defer { state.waiting = "" }
            return state.waiting
        }
        if !waiting.isEmpty { console.print(waiting) }
    }

    /// Tells a request's head, as far as the program knows it.
    func say(request: Request) {
        guard isVerbose else { return }
        tell(HeadText.of(request).prefixed("> "))
    }

    /// Tells a response's head.
    func say(head: ResponseHead) {
        guard isVerbose else { return }
        tell(HeadText.of(head).prefixed("< "))
    }

    /// Tells trailer fields.
    func say(trailers: HTTPFields) {
        guard isVerbose, !trailers.isEmpty else { return }
        tell(HeadText.of(trailers).prefixed("< "))
    }

    /// Tells of a redirect.
    func say(redirection: RedirectPolicy.Redirection) {
        state.withLock { $0.urls.append(redirection.proposed.url) }
        say(head: redirection.head)
        say(request: redirection.proposed)
    }
}
