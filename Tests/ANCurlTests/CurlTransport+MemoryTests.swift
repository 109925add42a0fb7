// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Synchronization
import TestSupport
import Testing

/// A number that tasks increase.
private final class Counter: Sendable {
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .acquiring) }

    func add() { number.add(1, ordering: .releasing) }
}

/// Sessions whose buffers have a budget.
@Suite(.timeLimit(.minutes(5))) struct MemoryTests {
    private static let budget = 1 << 20
    private static let readers = 40
    private static let size = 400_000

    private func transport() throws -> CurlTransport {
        var limits = ConnectionLimits()
        limits.maximumConnectionsPerHost = 0
        limits.memoryBudget = Self.budget
        return try CurlTransport(limits: limits)
    }

    /// The most bytes that are held by readers that have received their first chunk.
    private static func mostHeld(_ transport: CurlTransport) throws -> Int {
        let account = try #require(transport.memory).snapshot
        return account.holders * 2 * account.chunk + account.lent
    }

    @Test func `slow readers receive everything within the budget`() async throws {
        try await StubServer.with { server in
            server.route("/", .generated(Int64(Self.size)))
            let transport = try transport()
            let (request, expected) = (server.request(), StubServer.generatedBytes(Self.size))
            try await withThrowingTaskGroup { group in
                for _ in 0..<Self.readers {
                    group.addTask {
                        let received = try await transport.stream(request) { _, body in
                            var received = Data()
                            for try await chunk in body {
                                received.append(chunk)
                                #expect(try Self.mostHeld(transport) <= Self.budget)
                                await Task.yield()
                            }
                            return received
                        }
                        #expect(received == expected)
                    }
                }
                try await group.waitForAll()
            }
            #expect(transport.memory?.snapshot.holders == 0 && transport.memory?.snapshot.lent == 0)
        }
    }

    @Test func `readers that do not read keep none from reading, and free their share when they are cancelled`()
        async throws
    {
        try await StubServer.with { server in
            server.route("/", .generated(Int64(Self.size)))
            let transport = try transport()
            let request = server.request()
            let stuck = Counter()
            try await withThrowingTaskGroup { group in
                for _ in 0..<Self.readers {
                    group.addTask {
                        try await transport.stream(request) { _, _ in
                            stuck.add()
                            try await Task.sleep(for: .seconds(3600))
                        }
                    }
                }
                try await eventually { stuck.value == Self.readers }
                // What can be buffered is buffered before this reader begins, or while it reads.
                let count = try await transport.stream(server.request()) { _, body in
                    try await body.reduce(0) { $0 + $1.count }
                }
                #expect(count == Self.size)
                #expect(try Self.mostHeld(transport) <= Self.budget)
                group.cancelAll()
                while let result = await group.nextResult() {
                    #expect(throws: CancellationError.self) { try result.get() }
                }
            }
            #expect(transport.memory?.snapshot.holders == 0 && transport.memory?.snapshot.lent == 0)
        }
    }

    @Test func `a challenge is received without the budget, and its connection is used again`() async throws {
        try await StubServer.with { server in
            server.route("/", method: "POST") { request in
                if request.headers["Authorization"] != nil { return .text("\(request.body.count)") }
                return .reply(
                    status: 401, headers: ["WWW-Authenticate": #"Digest realm="a", nonce="b", qop="auth""#],
                    body: .string(String(repeating: "x", count: 60_000)))
            }
            var limits = ConnectionLimits()
            limits.memoryBudget = 0
            var request = server.request(method: .post, body: .bytes(Data("body".utf8)))
            var authentication = TransportAuthentication()
            authentication.server = .init(Credential(user: "user", password: "password"), by: .digest)
            request.transportAuthentication = authentication
            let text = try await CurlTransport(limits: limits).text(request)
            #expect(text == "4")
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `a budget of nothing lets everything pass`() async throws {
        try await StubServer.with { server in
            server.route("/down", .generated(Int64(Self.size)))
            server.route("/up", method: "POST") { request in .text("\(request.body.count)") }
            var limits = ConnectionLimits()
            limits.memoryBudget = 0
            let transport = try CurlTransport(limits: limits)
            let received = try await transport.stream(server.request("/down")) { _, body in
                var received = Data()
                for try await chunk in body { received.append(chunk) }
                return received
            }
            #expect(received == StubServer.generatedBytes(Self.size))
            let body = RequestBody.stream(Generated(count: Self.size))
            #expect(try await transport.text(server.request("/up", method: .post, body: body)) == "\(Self.size)")
        }
    }

    @Test func `servers that do not read hold no more than the budget of bodies`() async throws {
        try await StubServer.with { server in
            server.route("/", method: "POST", Script([.hang], readsBodyFirst: false))
            let transport = try transport()
            let request = server.request(method: .post, body: .stream(Generated(count: 100_000_000)))
            try await withThrowingTaskGroup { group in
                for _ in 0..<8 { group.addTask { _ = try await transport.collect(request) } }
                try await eventually { () throws in
                    #expect(try Self.mostHeld(transport) <= Self.budget)
                    return transport.memory.map { $0.snapshot.holders == 8 && $0.snapshot.lent > 100_000 } ?? false
                }
                group.cancelAll()
                while let result = await group.nextResult() {
                    #expect(throws: CancellationError.self) { _ = try result.get() }
                }
            }
            #expect(transport.memory?.snapshot.holders == 0 && transport.memory?.snapshot.lent == 0)
        }
    }

    @Test func `a streamed body is received over HTTP 1, because libcurl would receive much of a stream that waits`()
        async throws
    {
        let authority = try TestCertificateAuthority()
        var tls = StubServer.TLS(try authority.issue())
        tls.protocols = ["h2", "http/1.1"]
        try await StubServer.with(.init(tls: tls)) { server in
            server.fallback { _ in .text("HTTP/1.1") }
            var limits = ConnectionLimits()
            limits.memoryBudget = Self.budget
            let options = TransferOptions.with { $0.tls.trustRoots = .pem(authority.pemData) }
            let transport = try CurlTransport(limits: limits, http2: .multiplexed)
            let version = try await transport.stream(server.request(options: options)) { head, _ in head.version }
            #expect(version == .http1_1)
        }
    }
}
