// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// The sentences that programs print and log, with the texts that servers and programs put into them.
@Suite struct SentencesTests {
    private struct Sourced: Error, CustomStringConvertible {
        var description: String { "The file was removed." }
    }

    private static let reasons: [TransportError.Reason] = [
        .invalidURL(""), .invalidURL("x"), .unsupportedScheme(""), .unsupportedScheme("ftp"),
        .invalidRequest(.headerName("")), .invalidRequest(.headerName("a b")), .invalidRequest(.method("")),
        .invalidRequest(.headerValue(name: "X-A")), .invalidRequest(.option("a limit is negative.")),
        .unsupported("HTTP/3"), .timedOut(.connect), .timedOut(.responseBody), .cannotResolve,
        .cannotConnect(.refused), .cannotConnect(.other), .proxy(.tunnelRefused(status: 403)), .proxy(.handshake),
        .tls(.rejected("The key is not pinned.")), .tls(.certificateExpired), .tls(.badStaple("")),
        .connectionLost(.beforeResponse), .connectionLost(.inBody(received: 3, expected: 10)),
        .invalidResponse(.headerLine("Nul byte in header")), .invalidResponse(.headerLine("")),
        .invalidResponse(.statusLine("")), .invalidResponse(.statusLine("HTTP/9 x")), .invalidContentEncoding,
        .responseTooLarge(.body(limit: 5)), .requestBody(.source(Sourced())),
        .requestBody(.file(path: "a", reason: "No such file.")),
        .webSocketClosed(nil), .webSocketClosed(WebSocketClosure(code: 1001, reason: "")),
        .webSocketClosed(WebSocketClosure(code: 1008, reason: "No entry.")), .shutDown,
        .internalInconsistency("A step is missing."),
    ]

    private static let errors: [any Error] =
        reasons.flatMap { reason in
            var context = FailureContext()
            context.timeLimit = .nanoseconds(40_670_587)
            return [TransportError(reason), TransportError(reason, context: context)]
        } + [
            SerializationError.emptyBody(status: 200, wanted: "A"),
            SerializationError.emptyBody(status: 200, wanted: "Int"),
            SessionError.invalidCookie(name: ""), SessionError.invalidCookie(name: "a;b"),
            SessionError.cookiesNotStored,
            SessionError.notCached, SessionError.closedResponse(ofInterceptor: "Stopwatch"),
            SessionError.redirect(.location("")), SessionError.redirect(.location("ftp://x")),
            SessionError.redirect(.tooMany(limit: 20, to: "http://a.example/")), SessionError.invalidated,
            SessionError.authentication(.excessiveRefreshes(limit: 5)),
        ]

    @Test func `each message is a sentence with one full stop, without empty quotes or long fractions`() {
        for message in Self.errors.map({ "\($0)" }) {
            // For a reader of the log: all messages, once.
            print("    \(message)")
            #expect(message.hasSuffix(".") && !message.contains(".."), "\(message)")
            #expect(!message.contains("“”") && !message.contains(": ."), "\(message)")
            #expect(!message.contains(" a A ") && !message.contains(" a Int "), "\(message)")
            #expect(message.firstMatch(of: /\.[0-9]{4}/) == nil, "\(message)")
            #expect(!message.contains(". (") && !message.contains(".: ") && !message.contains(".” ("), "\(message)")
        }
    }

    @Test func `durations of events have at most three decimals`() {
        let attempt = RetryHistory.Attempt(outcome: .status(503), wait: .nanoseconds(40_670_587))
        #expect("\(TaskEvent.retrying(after: attempt))" == "waits 0.041 seconds for a retry, because of status 503")
        var metrics = TransferMetrics()
        metrics.total = .nanoseconds(1_234_567_890)
        #expect("\(TaskEvent.exchange(1, .finished(metrics)))" == "exchange finished after 1.235 seconds")
        #expect(
            "\(RetryHistory.StopReason.retryAfter(.nanoseconds(60_000_000_001)))"
                == "the server asks to wait 60.0 seconds")
    }
}
