// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Dispatch
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

/// Session tickets, which a server can send without end.
@Suite(.timeLimit(.minutes(5))) struct TicketsTests {
    private static let tickets = 200

    /// A server's options, which sends tickets before each write that ends with some bytes.
    private static func options(
        _ authority: TestCertificateAuthority, _ protocolName: String = "http/1.1", ticketsBefore end: [UInt8]? = nil,
        written: Lock<Int>
    ) throws -> StubServer.Options {
        var tls = StubServer.TLS(try authority.issue())
        tls.protocols = [protocolName]
        tls.ticketsBeforeWrite = { bytes in end.map { bytes.suffix($0.count).elementsEqual($0) } == true ? tickets : 0 }
        tls.didWrite = { written.withLock { $0 += 1 } }
        return .init(tls: tls)
    }

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
        let transferOptions = TransferOptions.with {
            $0.httpVersion = protocolName == "h2" ? .http2 : .http1
            $0.tls.trustRoots = .pem(authority.pemData)
        }
        var limits = ConnectionLimits()
        limits.eventLoops = 1
        let (transport, order) = (try CurlTransport(limits: limits), Lock([String]()))
        let hostileOptions = try Self.options(
            authority, protocolName, ticketsBefore: Array("ok".utf8), written: written)
        try await StubServer.with(hostileOptions) { hostile in
            try await StubServer.with(Self.options(authority, written: written)) { server in
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

    /// While the engine's thread is blocked, a resolver sends tickets and its answer, and then a server a response.
    @Test func `the tickets of a resolver are not read all at once`() async throws {
        let authority = try TestCertificateAuthority()
        let (answers, responses, unread) = (Lock(0), Lock(0), Lock(Int32(0)))
        let address = [127, 0, 0, 1] as [UInt8]
        var limits = ConnectionLimits()
        limits.eventLoops = 1
        let transport = try CurlTransport(limits: limits)
        let resolverOptions = try Self.options(authority, ticketsBefore: address, written: answers)
        try await StubServer.with(resolverOptions) { resolver in
            try await StubServer.with(Self.options(authority, written: responses)) { server in
                let (first, second) = (try ScriptGate(), try ScriptGate())
                resolver.route("/dns-query", method: "POST") { request in
                    // RFC 1035 §4.1.
                    let head: [UInt8] = [0, 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]
                    let record: [UInt8] = [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]
                    let answer = Data(head) + request.body.dropFirst(12) + Data(record + address)
                    let headers: HeaderPairs = ["Content-Type": "application/dns-message"]
                    return Script([.wait(first), .reply(Reply(headers: headers, body: .bytes(answer)))])
                }
                server.route("/", Script([.wait(second), .reply(Reply(body: .string("ok")))]))
                server.route("/barrier", .text("ok"))
                let options = TransferOptions.with {
                    $0.httpVersion = .http1
                    $0.tls.trustRoots = .pem(authority.pemData)
                }
                let url = try #require(URL(string: "http://name.invalid:9/"))
                let resolved = Request(
                    url: url,
                    options: options.with {
                        $0.connection.dnsOverHTTPS = resolver.url("/dns-query")
                        $0.connection.ipVersion = .v4
                    })
                async let failure = transport.failure(resolved)
                try await resolver.requests(count: 1)
                let socket = try #require(resolver.clientSocket)
                let look = Barrier { event in
                    guard case .head = event else { return false }
                    // See tcp(7).
                    unread.withLock { unsafe _ = ioctl(socket, UInt(FIONREAD), &$0) }
                    return false
                }
                async let other = transport.collect(server.request(options: options), reporting: look)
                try await server.requests(count: 1)
                let barrier = Barrier()
                async let blocking = transport.collect(server.request("/barrier", options: options), reporting: barrier)
                try await eventually { barrier.isReached.isRaised }
                first.open()
                try await eventually { answers.withLock { $0 == 1 } }
                second.open()
                try await eventually { responses.withLock { $0 == 2 } }
                barrier.mayPass.signal()
                _ = try await (other, blocking)
                #expect(try await failure.reason == .cannotConnect(.refused))
            }
        }
        #expect(unread.withLock(\.self) > 10_000)
    }
}
