// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct EndingsTests {
    @Test func `metrics include the time in the queue`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.enqueue(Script([.wait(gate), .reply(Reply(body: .string("first")))]))
            server.fallback { _ in .text("second") }
            var limits = ConnectionLimits()
            limits.maximumConnectionsPerHost = 1
            let transport = try CurlTransport(limits: limits)
            async let first = transport.text(server.request())
            try await server.requests(count: 1)
            let isBegun = Flag()
            let second = Task {
                isBegun.raise()
                return try await transport.ending(of: server.request())
            }
            try await eventually { isBegun.isRaised }
            // The second request is queued by then. If not, the expectation still holds.
            try await Task.sleep(for: .milliseconds(100))
            let opening = ContinuousClock.now
            gate.open()
            let metrics = try await second.value.metrics
            let sinceOpening = ContinuousClock.now - opening
            #expect(try await first == "first")
            // It left the queue after the gate was opened.
            #expect(metrics.total - metrics.queued <= sinceOpening)
            #expect(try #require(metrics.requestStart) >= metrics.queued)
        }
    }

    @Test func `a lost connection takes precedence over the reader's size limit`() async throws {
        try await StubServer.with { server in
            server.route("/", .truncated(declared: 100, sent: 50))
            server.route("/other", .text("other"))
            let transport = try CurlTransport()
            let recorder = EventRecorder()
            let error = await #expect(throws: TransportError.self) {
                try await transport.withResponse(for: server.request(), delivery: .streamed, reporting: recorder) {
                    _, body in
                    try await eventually { recorder.metrics != nil }
                    // Another request on the same loop ends after the loop has released this one.
                    _ = try await transport.text(server.request("/other"))
                    _ = try await body.collect(upTo: 10)
                }
            }
            #expect(error?.reason == .connectionLost(.inBody(received: 50, expected: 100)))
        }
    }
}
