// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite struct StubServerLifetimeTests {
    @Test(arguments: [StubServer.Address.ipv4, .ipv6, .unix(path: "/tmp/an-kit-test-\(getpid()).sock")])
    func `a server listens on the configured address`(address: StubServer.Address) async throws {
        try await StubServer.with(.init(address)) { server in
            server.route("/", .text("hello"))
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
            #expect(String(decoding: try await client.receiveToEnd().bytes, as: UTF8.self).hasSuffix("\r\n\r\nhello"))
        }
        if case .unix(let path) = address { #expect(!FileManager.default.fileExists(atPath: path)) }
    }

    @Test func `the socket of a stopped server is closed`() async throws {
        let port = try HeldPort()
        let server = try StubServer(.init(port: port.number))
        _ = try RawClient(server)
        await server.stop()
        #expect(throws: RawClient.Failure.system(111)) { _ = try RawClient(server) }
        withExtendedLifetime(port) {}
    }

    @Test func `a port in use is an error`() async throws {
        try await StubServer.with { server in
            #expect(throws: (any Error).self) { _ = try StubServer(.init(port: UInt16(server.endpoint.port))) }
        }
    }

    @Test func `a socket path that is too long is an error`() {
        #expect(throws: (any Error).self) {
            _ = try StubServer(.init(.unix(path: String(repeating: "x", count: 200))))
        }
    }

    @Test func `600 connections are served concurrently`() async throws {
        let gate = try ScriptGate()
        try await StubServer.with { server in
            server.route("/", Script([.wait(gate), .reply(Reply(status: 204))]))
            let clients = try (0..<600).map { _ in try RawClient(server) }
            for client in clients { try client.send("GET / HTTP/1.1\r\n\r\n") }
            try await server.requests(count: 600)
            #expect(server.activity.openConnections == 600)
            gate.open()
            for client in clients { _ = try await client.receive(upTo: "\r\n\r\n") }
        }
    }

    @Test func `all connections can be ended`() async throws {
        try await StubServer.with { server in
            server.route("/", .status(204))
            let client = try RawClient(server)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            _ = try await client.receive(upTo: "\r\n\r\n")
            server.disconnectAll()
            #expect(try await client.receiveToEnd().bytes.isEmpty)
            try await server.connections(open: 0)
            let second = try RawClient(server)
            try second.send("GET / HTTP/1.1\r\n\r\n")
            _ = try await second.receive(upTo: "\r\n\r\n")
            #expect(server.activity.connectionsAccepted == 2)
        }
    }

    @Test func `a connection can be greeted with silence, an ending or a reset`() async throws {
        try await StubServer.with { server in
            server.greet(.end(.close), .end(.reset), .hang)
            let closed = try RawClient(server)
            #expect(try await closed.receiveToEnd().error == nil)
            let reset = try RawClient(server)
            #expect(try await reset.receiveToEnd().error == .connectionReset)
            let silent = try RawClient(server)
            try silent.send("GET / HTTP/1.1\r\n\r\n")
            try await server.activity { $0.connectionsAccepted == 3 }
            #expect(server.activity.requests.isEmpty)
            #expect(!silent.hasBytes)
        }
    }

    @Test func `clients that disconnect crash neither the process nor the server`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .generated(1 << 30) }
            for _ in 0..<20 {
                let client = try RawClient(server)
                try client.send("GET / HTTP/1.1\r\n\r\n")
                _ = try await client.receive(upTo: "\r\n\r\n")
            }
            let activity = try await server.activity { $0.requests.count == 20 && $0.openConnections == 0 }
            #expect(activity.requests.allSatisfy { $0.isAbandoned })
        }
    }

    @Test(.exitTest, .timeLimit(.minutes(5))) func `a stopped server leaves no descriptor and no thread`() async {
        // In a process of its own, where no other test opens and closes descriptors.
        await #expect(processExitsWith: .success) {
            let certificate = try TestCertificateAuthority().issue()
            // The first round creates what the process keeps: the thread pool, OpenSSL's tables.
            try await useServers(certificate)
            let before = try ProcessResources()
            for _ in 0..<5 { try await useServers(certificate) }
            // The runtime opens a few of its own meanwhile; a leak would be one of each server.
            try #require(try ProcessResources().descriptors.count < before.descriptors.count + 10)
            // A joined thread is listed until the kernel has removed it.
            try await eventually { try !ProcessResources().threads.contains { $0.hasPrefix("stub-") } }
        }
    }
}

/// Uses a server without and one with TLS, each with hanging connections; with TLS these never finish the handshake.
private func useServers(_ certificate: TestCertificate) async throws {
    for options in [StubServer.Options(), .init(tls: .init(certificate))] {
        let server = try StubServer(options)
        server.fallback { _ in .hang }
        let clients = try (0..<10).map { _ in try RawClient(server) }
        for client in clients { try client.send("GET / HTTP/1.1\r\n\r\n") }
        try await server.activity { $0.connectionsAccepted == 10 }
        await server.stop()
    }
}
