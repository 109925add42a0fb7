// SPDX-License-Identifier: MIT

/// The events of a call between its exchanges, for ``timeline(of:)``.
package struct CallHistory: Hashable, Sendable {
    /// The events, in order; of more than 256, only the first 16 and the latest 240.
    package var steps: [Step] = [] {
        didSet {
            for step in steps.removeMiddle() {
                omitted += 1
                if case .retrying = step.event { omittedAttempts += 1 }
            }
        }
    }
    /// The number of events that are left out, and of the attempts among them.
    private var (omitted, omittedAttempts) = (0, 0)
    /// The time of the whole call so far; zero if it is not known.
    package var duration: Duration = .zero

    /// Creates the history of a call in which nothing happened yet.
    package init() {}

    /// An event between two exchanges.
    package struct Step: Hashable, Sendable {
        /// The time since the call began.
        package var time: Duration
        package var event: Event

        package init(at time: Duration, _ event: Event) {
            self.time = time
            self.event = event
        }
    }

    /// The kind of an event between two exchanges.
    package enum Event: Hashable, Sendable {
        /// A response with the status was a redirect to the URL, which has no secrets.
        case redirected(status: Int, to: String)
        /// A server asked for a credential, and another request is sent.
        case answeringChallenge
        /// The call waited for a new token.
        case refreshingToken
        /// There was no route, and the call waited for one.
        case waitingForConnectivity(ErrorLabel)
        /// An attempt failed, and there was another one.
        case retrying(after: RetryHistory.Attempt)
    }
}

extension CallHistory {
    /// Returns the course of the call as text, one line for an event with its time.
    ///
    /// - Parameters:
    ///   - title: The first line.
    ///   - end: The last event, whose time is ``duration``.
    ///   - metrics: The metrics of the last exchange; `nil` if they are unknown.
    ///   - facts: Further lines, each with a name.
    package func timeline(
        _ title: String, end: String, metrics: TransferMetrics?, facts: [(name: String, value: String)]
    ) -> String {
        var lines = [(time: Duration.zero, text: "begins")]
        var attempt = 1
        for (index, step) in steps.enumerated() {
            if omitted > 0, index == 16 {
                lines.append((step.time, "\(omitted) events are left out"))
                attempt += omittedAttempts
            }
            switch step.event {
            case .redirected(let status, let url): lines.append((step.time, "redirected by \(status) to \(url)"))
            case .answeringChallenge: lines.append((step.time, "answers a challenge"))
            case .refreshingToken: lines.append((step.time, "waits for a new token"))
            case .waitingForConnectivity(let label):
                lines.append((step.time, "waits for a route, because of \(label.rawValue)"))
            case .retrying(let failed):
                let phases = failed.metrics.map(\.phases) ?? ""
                lines.append((step.time, "attempt \(attempt) failed: \(failed.reason)\(phases)"))
                attempt += 1
                lines.append((step.time + failed.wait, "attempt \(attempt), after a wait of \(failed.wait.forPeople)"))
            }
        }
        lines.append((duration, end + (metrics?.phases ?? "")))
        let times = lines.map(\.time.forPeople)
        let width = times.map(\.count).max() ?? 0
        let rows = zip(lines, times).map { line, time in
            String(repeating: " ", count: 2 + width - time.count) + time + "  " + line.text
        }
        let notes = facts.map { "  \($0.name): \($0.value)" }
        return ([title] + rows + notes).joined(separator: "\n").split(at: "\n").map(\.printable)
            .joined(separator: "\n")
    }
}

extension TransferMetrics {
    /// The time of each phase, in parentheses after a space; empty if no phase took time.
    fileprivate var phases: String {
        let timings = HAR.Timings(self)
        let tcp = timings.ssl > 0 ? timings.connect - timings.ssl : timings.connect
        let named = [
            ("queue", timings.blocked), ("name", timings.dns), ("connect", tcp), ("TLS", timings.ssl),
            ("send", timings.send), ("wait", timings.wait), ("receive", timings.receive),
        ]
        let words = named.filter { $0.1 >= 0.05 }.map { "\($0.0) \(Duration.milliseconds($0.1).forPeople)" }
        return words.isEmpty ? "" : " (\(words.joined(separator: ", ")))"
    }
}

extension Duration {
    /// The duration as people read it: `0.4 ms`, `31 ms`, `1.25 s` or `2 min 5 s`.
    package var forPeople: String {
        let microseconds = max(0, self / .microseconds(1))
        guard microseconds < 9e15 else { return "\(self)" }
        if microseconds < 9_950 {
            let tenths = Int64((microseconds / 100).rounded())
            return tenths == 0 ? "0 ms" : "\(tenths / 10).\(tenths % 10) ms"
        }
        if microseconds < 999_500 { return "\(Int64((microseconds / 1_000).rounded())) ms" }
        if microseconds < 59_995_000 {
            let hundredths = Int64((microseconds / 10_000).rounded())
            return "\(hundredths / 100).\(hundredths % 100 / 10)\(hundredths % 10) s"
        }
        let seconds = Int64((microseconds / 1_000_000).rounded())
        return seconds % 60 == 0 ? "\(seconds / 60) min" : "\(seconds / 60) min \(seconds % 60) s"
    }
}

extension TransportError {
    /// The course of the call as text; see `SessionError.timeline`.
    package var timeline: String {
        var history = context.callHistory
        if history.duration == .zero { history.duration = context.elapsed }
        let url = context.url.isEmpty ? "no request was sent" : Redaction.standard.url(context.url)
        let end = quotesOthers ? "failed" : clause(quoting: false)
        return history.timeline(
            "\(label.rawValue): \(url)", end: end.hasSuffix(".") ? String(end.dropLast()) : end,
            metrics: context.metrics, facts: context.facts(withMessage: !quotesOthers))
    }

    /// Whether the description contains text of the server or the program, which may be secret.
    var quotesOthers: Bool {
        switch reason {
        case .invalidURL, .unsupportedScheme, .invalidRequest, .invalidResponse, .invalidContentEncoding, .requestBody,
            .webSocketClosed, .internalInconsistency, .proxy(.tls(.rejected)), .tls(.rejected), .tls(.badStaple),
            .tls(.keyLog):
            true
        default: false
        }
    }
}

extension FailureContext {
    fileprivate func facts(withMessage isComplete: Bool) -> [(name: String, value: String)] {
        var facts: [(name: String, value: String)] = []
        if let address { facts.append(("address", "\(address)")) }
        if isComplete, let message { facts.append(("message", message)) }
        if let errno { facts.append(("errno", "\(errno)")) }
        if let curlCode { facts.append(("curl", "\(curlCode)")) }
        if let timeLimit { facts.append(("limit", timeLimit.forPeople)) }
        if sendCount > 1 { facts.append(("sent", "\(sendCount) times")) }
        return facts + retryHistory.facts
    }
}

extension RetryHistory {
    /// Why there was no further attempt, for a timeline.
    package var facts: [(name: String, value: String)] {
        stopReason.map { [("not retried", "because \($0)")] } ?? []
    }
}
