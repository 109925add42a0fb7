// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// Transports with several event loops.
@Suite(.timeLimit(.minutes(5))) struct EventLoopsTests {
    /// The number of loops that the linked libcurl permits, of four.
    private static var mostLoops: Int {
        (try? CurlLibrary.current.get().defects.contains(.unlockedCookies)) == false ? 4 : 1
    }

    private func transport(
        _ loops: Int = 4, _ change: (inout ConnectionLimits) -> Void = { _ in }
    ) throws -> CurlTransport {
        var limits = ConnectionLimits()
        limits.eventLoops = loops
        change(&limits)
        return try CurlTransport(limits: limits)
    }

    @Test(arguments: [(0, 1), (-5, 1), (.max, 64), (3, 3)])
    func `a number is at least 1 and at most 64`(loops: Int, maximum: Int) {
        var limits = ConnectionLimits()
        #expect((1...8).contains(limits.maximumEventLoops))
        limits.eventLoops = loops
        #expect(limits.maximumEventLoops == maximum)
    }

    @Test func `requests one after the other use one loop and one connection`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try transport()
            for _ in 0..<20 { #expect(try await transport.text(server.request()) == "ok") }
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `requests at the same time use several loops`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply(body: .string("ok")))]) }
            let transport = try transport { $0.maximumConnectionsPerHost = 0 }
            try await withThrowingTaskGroup(of: String.self) { group in
                for count in 1...32 {
                    group.addTask { try await transport.text(server.request()) }
                    try await server.requests(count: count)
                }
                let snapshot = await transport.features.snapshot()
                #expect(snapshot.exchanges.count == 32)
                #expect(snapshot.connections.count == 32)
                gate.open()
                for try await text in group { #expect(text == "ok") }
            }
            #expect(transport.loopCount == Self.mostLoops)
        }
    }

    @Test(arguments: [1, 2, 6])
    func `the limit for a host holds over all loops, whoever waits moves to a free connection`(
        limit: Int
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try transport { $0.maximumConnectionsPerHost = limit }
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<300 { group.addTask { try await transport.text(server.request()) } }
                for try await text in group { #expect(text == "ok") }
            }
            #expect(server.activity.connectionsAccepted <= limit)
            #expect(server.activity.requests.count == 300)
        }
    }

    @Test func `cancelling those who wait and move loses none`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try transport { $0.maximumConnectionsPerHost = 2 }
            for round in 0..<10 {
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<60 {
                        group.addTask {
                            let task = Task { try await transport.text(server.request()) }
                            if (number + round) % 3 == 0 {
                                // At another moment in each round.
                                for _ in 0..<number * round { await Task.yield() }
                                task.cancel()
                            }
                            _ = await task.result
                        }
                    }
                }
            }
            #expect(try await transport.text(server.request()) == "ok")
            #expect(await transport.features.snapshot().exchanges.isEmpty)
        }
    }

    @Test func `time limits hold while exchanges wait on different loops`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply())]) }
            let transport = try transport { $0.maximumConnectionsPerHost = 1 }
            let first = Task { try await transport.collect(server.request()) }
            try await server.requests(count: 1)
            let options = TransferOptions.with { $0.timeouts.queue = .milliseconds(50) }
            try await withThrowingTaskGroup(of: TransportError.self) { group in
                for _ in 0..<12 { group.addTask { try await transport.failure(server.request(options: options)) } }
                for try await error in group { #expect(error.reason == .timedOut(.queue)) }
            }
            gate.open()
            _ = try await first.value
        }
    }

    @Test func `cookies of one loop are sent by all`() async throws {
        try await StubServer.with { server in
            server.route("/set") { _ in .reply(headers: ["Set-Cookie": "name=value"], body: .string("ok")) }
            server.fallback { request in .text(request.headers["Cookie"] ?? "none") }
            let transport = try transport { $0.maximumConnectionsPerHost = 0 }
            _ = try await transport.text(server.request("/set"))
            let gate = try ScriptGate()
            server.route("/slow") { request in
                Script([.wait(gate), .reply(Reply(body: .string(request.headers["Cookie"] ?? "none")))])
            }
            try await withThrowingTaskGroup(of: String.self) { group in
                for count in 1...16 {
                    group.addTask { try await transport.text(server.request("/slow")) }
                    try await server.requests(count: 1 + count)
                }
                gate.open()
                for try await text in group { #expect(text == "name=value") }
            }
            #expect(transport.loopCount == Self.mostLoops)
        }
    }

    @Test func `after a shutdown all loops refuse`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply())]) }
            let transport = try transport { $0.maximumConnectionsPerHost = 0 }
            try await withThrowingTaskGroup(of: TransportError.self) { group in
                for count in 1...16 {
                    group.addTask { try await transport.failure(server.request()) }
                    try await server.requests(count: count)
                }
                await transport.shutdown()
                for try await error in group { #expect(error.reason == .shutDown) }
            }
            #expect(try await transport.failure(server.request()).reason == .shutDown)
            gate.open()
        }
    }

    @Test(.exitTest) func `the threads and descriptors of all loops end with their transport`() async {
        await #expect(processExitsWith: .success) {
            // libcurl opens files when it is first used.
            try await CurlTransport().shutdown()
            try await eventually { try ProcessResources().engineThreads == 0 }
            let before = try ProcessResources()
            try await StubServer.with { server in
                let gate = try ScriptGate()
                server.fallback { _ in Script([.wait(gate), .reply(Reply())]) }
                let transport = try EventLoopsTests().transport { $0.maximumConnectionsPerHost = 0 }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for count in 1...16 {
                        group.addTask { _ = try await transport.collect(server.request()) }
                        try await server.requests(count: count)
                    }
                    gate.open()
                    try await group.waitForAll()
                }
                try #require(try ProcessResources().engineThreads == EventLoopsTests.mostLoops)
            }
            try await eventually { try ProcessResources().isWithin(before) }
        }
    }
}
