// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import AsyncNetworkingTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct PoolTests {
    private func pool(_ change: (inout ConnectionLimits) -> Void) throws -> CurlTransport {
        var limits = ConnectionLimits()
        change(&limits)
        return try CurlTransport(limits: limits)
    }

    @Test func `a connection is used again, and the metrics say so`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            let first = try await transport.ending(of: server.request()).metrics
            let second = try await transport.ending(of: server.request()).metrics
            #expect(!first.isConnectionReused)
            #expect(first.connect != nil)
            #expect(second.isConnectionReused)
            #expect(second.connect == nil)
            #expect(second.nameLookup == nil)
            #expect(first.localAddress == second.localAddress)
            #expect(try await server.requests(count: 2).map(\.connection) == [0, 0])
        }
    }

    @Test func `a connection that the server closed in time is not used again`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            server.disconnectAll()
            try await server.connections(open: 0)
            // Nor is it listed once the loop has seen its end.
            while await !transport.features.snapshot().connections.isEmpty { await Task.yield() }
            let metrics = try await transport.ending(of: server.request(method: .post)).metrics
            #expect(metrics.sendCount == 1)
            #expect(!metrics.isConnectionReused)
        }
    }

    @Test func `a response that announces the end of its connection ends it`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .reply(headers: ["Connection": "close"], body: .string("ok")) }
            let transport = try CurlTransport()
            for _ in 0..<3 { #expect(try await transport.text(server.request()) == "ok") }
            #expect(try await server.requests(count: 3).map(\.connection) == [0, 1, 2])
        }
    }

    @Test func `slow requests to one host run side by side from the start`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply())]) }
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 { group.addTask { _ = try await transport.collect(server.request()) } }
                try await server.requests(count: 6)
                gate.open()
                try await group.waitForAll()
            }
        }
    }

    @Test func `above the limit for a host requests wait`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try pool { $0.maximumConnectionsPerHost = 2 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<100 { group.addTask { _ = try await transport.text(server.request()) } }
                try await group.waitForAll()
            }
            #expect(server.activity.connectionsAccepted <= 2)
            #expect(server.activity.requests.count == 100)
        }
    }

    @Test func `0 connections a host means no limit`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply())]) }
            let transport = try pool { $0.maximumConnectionsPerHost = 0 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<30 { group.addTask { _ = try await transport.collect(server.request()) } }
                try await server.requests(count: 30)
                gate.open()
                try await group.waitForAll()
            }
        }
    }

    @Test func `the total limit holds over all hosts`() async throws {
        try await StubServer.with { first in
            try await StubServer.with { second in
                for server in [first, second] { server.fallback { _ in .text("ok") } }
                let transport = try pool { $0.maximumConnections = 1 }
                for _ in 0..<3 {
                    #expect(try await transport.text(first.request()) == "ok")
                    #expect(try await transport.text(second.request()) == "ok")
                    try await second.connections(open: 1)
                    try await first.connections(open: 0)
                }
            }
        }
    }

    @Test func `a host that is busy does not hold up another one`() async throws {
        try await StubServer.with { busy in
            try await StubServer.with { free in
                busy.fallback { _ in .hang }
                free.fallback { _ in .text("ok") }
                let transport = try pool { $0.maximumConnectionsPerHost = 1 }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<20 { group.addTask { _ = try await transport.collect(busy.request()) } }
                    try await busy.requests(count: 1)
                    // Requests to both hosts wait in one queue.
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<20 { group.addTask { _ = try await transport.collect(free.request()) } }
                        try await group.waitForAll()
                    }
                    group.cancelAll()
                }
                #expect(free.activity.connectionsAccepted == 1)
            }
        }
    }

    @Test func `a place that becomes free is given to whoever can use it`() async throws {
        try await StubServer.with { busy in
            try await StubServer.with { free in
                let gate = try ScriptGate()
                busy.fallback { _ in .hang }
                free.enqueue(Script([.wait(gate), .reply(Reply())]))
                free.fallback { _ in .text("ok") }
                let transport = try pool { $0.maximumConnectionsPerHost = 1 }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try await transport.collect(free.request()) }
                    try await free.requests(count: 1)
                    for _ in 0..<20 { group.addTask { _ = try? await transport.collect(busy.request()) } }
                    try await busy.requests(count: 1)
                    let recorder = EventRecorder()
                    group.addTask { _ = try await transport.collect(free.request("/last"), reporting: recorder) }
                    gate.open()
                    try await free.requests(count: 2)
                    _ = try await recorder.first { if case .finished = $0 { true } else { false } }
                    group.cancelAll()
                    try await group.waitForAll()
                }
            }
        }
    }

    @Test func `a connection that was idle for too long is not used again`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try pool { $0.maximumIdleAge = .zero }
            _ = try await transport.text(server.request())
            try await Task.sleep(for: .milliseconds(2100))  // The age is real time, in whole seconds.
            _ = try await transport.text(server.request())
            #expect(try await server.requests(count: 2).map(\.connection) == [0, 1])
        }
    }

    @Test func `an event loop without requests closes its idle connections`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try pool { $0.maximumIdleAge = .zero }
            for connection in 0..<2 {
                _ = try await transport.text(server.request())
                try await server.connections(open: 0)
                #expect(server.activity.requests.last?.connection == connection)
            }
        }
    }

    /// With libcurl before 8.10.1, which does not keep connections with prior knowledge, this could not fail.
    @Test func `plain HTTP does not use a connection that speaks HTTP/2`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                request.method == "PRI" ? .http2([.head(1), .data(1, "two", endsStream: true)]) : .text("one")
            }
            let transport = try CurlTransport()
            let known = server.request(options: .with { $0.httpVersion = .http2PriorKnowledge })
            #expect(try await transport.text(known) == "two")
            let plain = try await transport.ending(of: server.request(options: .with { _ in })).metrics
            #expect(plain.httpVersion == .http1_1)
            #expect(!plain.isConnectionReused)
        }
    }

    // MARK: Stale connections

    static let stale: [Script] = [.close, Script([.end(.reset)])]

    /// The rest of the bytes could arrive after the next request, and would be its response.
    @Test(
        arguments: [
            (.head, "200 OK\r\nContent-Length: 10", "0123456789"), (.get, "204 No Content", "x"),
            (.get, "304 Not Modified", "x"), (.get, "200 OK\r\nContent-Length: 0", "x"),
            (.get, "200 OK\r\nContent-Length: 1", "xy"), (.get, "200 OK\r\nContent-Length: 1", "x"),
            (.head, "200 OK\r\nContent-Length: 1", ""),
        ] as [(HTTPRequest.Method, String, String)])
    func `a connection with bytes after a response is not used again`(
        method: HTTPRequest.Method, head: String, rest: String
    ) async throws {
        try await StubServer.with { server in
            server.enqueue(Script([.send(Data("HTTP/1.1 \(head)\r\n\r\n\(rest)".utf8))]))
            server.fallback { _ in .text("good") }
            let transport = try CurlTransport()
            _ = try await transport.collect(Request(method: method, url: server.url("/")))
            #expect(try await transport.text(server.request()) == "good")
            let isWhole =
                method == .head ? rest.isEmpty : rest == "x" && head.hasSuffix("1") || rest.hasSuffix("b\r\n\r\n")
            #expect(server.activity.requests.map(\.connection) == [0, isWhole ? 0 : 1])
        }
    }

    @Test(arguments: [HTTPRequest.Method.get, .head, .put, .delete, .options], stale)
    func `a request is repeated once after its connection turns out to be dead`(
        method: HTTPRequest.Method, death: Script
    ) async throws {
        try await StubServer.with { server in
            server.enqueue(.text("first"), death, .text("again"))
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            let metrics = try await transport.ending(of: server.request(method: method)).metrics
            #expect(metrics.sendCount == 2)
            #expect(!metrics.isConnectionReused)
            let connections = try await server.requests(count: 3).map(\.connection)
            #expect(connections[2] != connections[1])
        }
    }

    @Test(arguments: [RequestBody.none, .string("body"), .stream(Generated(count: 9), isReplayable: true)], stale)
    func `a request that is not idempotent is not repeated`(body: RequestBody, death: Script) async throws {
        try await StubServer.with { server in
            server.enqueue(.text("first"), death)
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            let error = try await transport.failure(server.request(method: .post, body: body))
            switch error.reason {
            case .connectionLost(.beforeResponse), .connectionLost(.whileSending):
                #expect(error.context.sendCount == 1)
            default: throw error
            }
            #expect(server.activity.requests.count == 2)
            #expect(server.activity.connectionsAccepted == 1)
        }
    }

    @Test func `a request is repeated once only`() async throws {
        try await StubServer.with { server in
            server.route("/", .text("ok"))
            server.route("/dead", .close)
            let transport = try CurlTransport()
            // Four idle connections: libcurl would try one after the other.
            try await withThrowingTaskGroup(of: Void.self) { group in
                let gate = try ScriptGate()
                server.route("/wait", Script([.wait(gate), .reply(Reply())]))
                for _ in 0..<4 { group.addTask { _ = try await transport.collect(server.request("/wait")) } }
                try await server.requests(count: 4)
                gate.open()
                try await group.waitForAll()
            }
            let error = try await transport.failure(server.request("/dead"))
            guard case .connectionLost(.beforeResponse) = error.reason else { throw error }
            let context = error.context
            #expect(context.sendCount == 2)
            #expect(server.activity.requests.filter { $0.path == "/dead" }.count == 2)
        }
    }

    /// The server closes all of them when it is asked, as after a restart behind a load balancer.
    @Test(arguments: [HTTPRequest.Method.get, .put])
    func `a request whose idle connection was dead is sent on a new one`(method: HTTPRequest.Method) async throws {
        try await StubServer.with { server in
            let old = Lock(Set<Int>())
            let gate = try ScriptGate()
            server.route("/wait") { request in
                old.withLock { _ = $0.insert(request.connection) }
                return Script([.wait(gate), .reply(Reply())])
            }
            server.route("/", method: method.rawValue) { request in
                old.withLock { $0.contains(request.connection) } ? .close : .text("new")
            }
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 { group.addTask { _ = try await transport.collect(server.request("/wait")) } }
                try await server.requests(count: 4)
                gate.open()
                try await group.waitForAll()
            }
            let metrics = try await transport.ending(of: server.request(method: method, body: .string("body"))).metrics
            #expect(metrics.sendCount == 2)
            #expect(!metrics.isConnectionReused)
        }
    }

    /// libcurl itself sends the request again, on a connection of its own or the idle one that it finds next.
    @Test(arguments: [(HTTPRequest.Method.get, 2), (.post, 1)], [RequestBody.none, .string("body")])
    func `a request that must not be repeated is not repeated either because the next idle connection has expired`(
        method: (HTTPRequest.Method, sendCount: Int), body: RequestBody
    ) async throws {
        try await StubServer.with { server in
            let transport = try CurlTransport()
            try await withThrowingTaskGroup(of: Void.self) { group in
                let gate = try ScriptGate()
                for (number, headers) in [HeaderPairs(), ["Keep-Alive": "timeout=0"]].enumerated() {
                    server.enqueue(Script([.wait(gate), .reply(Reply(headers: headers))]))
                    group.addTask { _ = try await transport.collect(server.request()) }
                    try await server.requests(count: number + 1)
                }
                gate.open()
                try await group.waitForAll()
            }
            server.route("/dead", .close)
            let error = try await transport.failure(server.request("/dead", method: method.0, body: body))
            switch error.reason {
            case .connectionLost(.beforeResponse), .connectionLost(.whileSending):
                #expect(error.context.sendCount == method.sendCount)
            default: throw error
            }
            #expect(server.activity.requests.count { $0.path == "/dead" } == method.sendCount)
        }
    }

    @Test func `a request is not repeated after a byte of its response`() async throws {
        try await StubServer.with { server in
            server.enqueue(.text("first"), .resetAfter(bytes: 20))
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            let error = try await transport.failure(server.request())
            guard case .connectionLost(.inHead) = error.reason else { throw error }
            let context = error.context
            #expect(context.sendCount == 1)
            #expect(server.activity.requests.count == 2)
        }
    }

    @Test(arguments: [10, 3_000_000], [true, false])
    func `a body that can be read again is repeated whole`(count: Int, isFile: Bool) async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("replay-\(UUID())").path
        #expect(FileManager.default.createFile(atPath: path, contents: StubServer.generatedBytes(count)))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await StubServer.with { server in
            let death = Script([.readBody(upTo: 5), .end(.reset)], readsBodyFirst: false)
            server.enqueue(.text("first"), death, .text("again"))
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            let body = isFile ? RequestBody.file(path) : .stream(Generated(count: count), isReplayable: true)
            let metrics = try await transport.ending(of: server.request(method: .put, body: body)).metrics
            #expect(metrics.sendCount == 2)
            let request = try await server.requests(count: 3)[2]
            #expect(request.bodyLength == Int64(count))
            if count <= 10 { #expect(request.body == StubServer.generatedBytes(count)) }
        }
    }

    @Test func `a body that can be read once only is not repeated`() async throws {
        try await StubServer.with { server in
            let death = Script([.readBody(upTo: 5), .end(.close)], readsBodyFirst: false)
            server.enqueue(.text("first"), death)
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            let error = try await transport.failure(
                server.request(method: .put, body: .stream(Generated(count: 10))))
            switch error.reason {
            case .requestBody(.notReplayable), .connectionLost: break
            default: throw error
            }
            #expect(server.activity.requests.count == 2)
        }
    }

    // MARK: Crowds

    @Test func `two thousand requests over six connections all end, also where some are cancelled`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("ok") }
            let transport = try CurlTransport()
            for cancels in [false, true] {
                let outcomes = await withTaskGroup(of: Bool.self) { group in
                    for number in 0..<2000 {
                        group.addTask {
                            let task = Task { try await transport.text(server.request("/\(number)")) }
                            if cancels, number % 3 == 0 { task.cancel() }
                            return (try? await task.value) == "ok"
                        }
                    }
                    return await group.reduce(into: 0) { if $1 { $0 += 1 } }
                }
                #expect(cancels ? outcomes >= 1333 : outcomes == 2000)
            }
            #expect(server.activity.connectionsAccepted >= 6)
        }
    }
}
