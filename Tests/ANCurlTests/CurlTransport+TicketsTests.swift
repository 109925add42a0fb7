// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

/// Session tickets, which a server can send without end.
@Suite(.timeLimit(.minutes(5))) struct TicketsTests {
    private static let tickets = 200

    /// Records the order of the heads of responses, and may block the engine's thread at one.
    private struct Heads: ExchangeEventSink {
        let name: String
        let order: Lock<[String]>
        var barrier: DispatchSemaphore?

        func receive(_ event: ExchangeEvent) {
            guard case .head = event else { return }
            order.withLock { $0.append(name) }
            barrier?.wait()
        }
    }

    /// While the engine's thread is blocked, a server sends tickets and a response, and then another one a response.
    @Test(arguments: ["http/1.1", "h2"])
    func `the tickets of one server do not delay the response of another one`(protocolName: String) async throws {
        let authority = try TestCertificateAuthority()
        let written = Lock(0)
        func options(tickets: Int, _ protocolName: String) throws -> StubServer.Options {
            var tls = StubServer.TLS(try authority.issue())
            tls.protocols = [protocolName]
            tls.ticketsBeforeWrite = { $0.suffix(2).elementsEqual("ok".utf8) ? tickets : 0 }
            tls.didWrite = { written.withLock { $0 += 1 } }
            return .init(tls: tls)
        }
        let transferOptions = TransferOptions.with {
            $0.httpVersion = protocolName == "h2" ? .http2 : .http1
            $0.tls.trustRoots = .pem(authority.pemData)
        }
        var limits = ConnectionLimits()
        limits.eventLoops = 1
        let (transport, order) = (try CurlTransport(limits: limits), Lock([String]()))
        try await StubServer.with(options(tickets: Self.tickets, protocolName)) { hostile in
            try await StubServer.with(options(tickets: 0, "http/1.1")) { server in
                let (first, second) = (try ScriptGate(), try ScriptGate())
                let frames = [HTTP2Frame.head(1), .data(1, "ok", endsStream: true)].reduce(Data()) { $0 + $1.bytes }
                hostile.fallback { _ in
                    protocolName == "h2"
                        ? Script([
                            .send(HTTP2Frame.settings.bytes + HTTP2Frame.settingsAcknowledged.bytes), .wait(first),
                            .send(frames), .hang,
                        ])
                        : Script([.wait(first), .reply(Reply(body: .string("ok")))])
                }
                server.route("/", Script([.wait(second), .reply(Reply(body: .string("ok")))]))
                server.route("/barrier", .text("ok"))
                func begin(_ server: StubServer, _ path: String, _ name: String, _ barrier: DispatchSemaphore? = nil)
                    -> Task<Void, any Error>
                {
                    let request = server.request(path, options: transferOptions)
                    let heads = Heads(name: name, order: order, barrier: barrier)
                    return Task { _ = try await transport.collect(request, reporting: heads) }
                }
                let barrier = DispatchSemaphore(value: 0)
                var tasks = [begin(hostile, "/", "hostile")]
                try await hostile.requests(count: 1)
                tasks.append(begin(server, "/", "other"))
                try await server.requests(count: 1)
                tasks.append(begin(server, "/barrier", "barrier", barrier))
                try await eventually { order.withLock { $0 == ["barrier"] } }
                for gate in [first, second] {
                    let count = written.withLock(\.self)
                    gate.open()
                    try await eventually { written.withLock { $0 > count } }
                }
                barrier.signal()
                for task in tasks { try await task.value }
            }
        }
        #expect(order.withLock(\.self) == ["barrier", "other", "hostile"])
    }
}
