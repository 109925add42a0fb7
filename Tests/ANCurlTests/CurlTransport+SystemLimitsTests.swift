// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import Glibc
import HTTPTypes
import TestSupport
import Testing

/// What the system does with sockets while libcurl waits, and what it refuses.
@Suite(.timeLimit(.minutes(2))) struct SystemLimitsTests {
    @Test func `a connection that its server closes while it is idle is closed at once`() async throws {
        try await StubServer.with { server in
            // None may use a connection that is about to be closed.
            let gate = try ScriptGate()
            server.fallback { _ in Script([.wait(gate), .reply(Reply(body: .string("ok"))), .end(.close)]) }
            let transport = try CurlTransport()
            let ports = try await withThrowingTaskGroup { group in
                for _ in 0..<6 {
                    group.addTask {
                        try await transport.ending(of: server.request()).metrics.localAddress?.port
                    }
                }
                try await server.requests(count: 6)
                gate.open()
                return try await group.reduce(into: Set<Int>()) { ports, port in port.map { _ = ports.insert($0) } }
            }
            #expect(ports.count == 6)
            // After a minute, libcurl closes idle connections of any kind.
            try await eventually(within: .seconds(30)) { Set(try Self.portsInCloseWait()).isDisjoint(with: ports) }
            #expect(try await transport.text(server.request()) == "ok")
        }
    }

    /// The local ports of connections whose peer has closed them. See proc_net_tcp(5).
    private static func portsInCloseWait() throws -> [Int] {
        let lines = try String(contentsOfFile: "/proc/self/net/tcp", encoding: .utf8).split(separator: "\n").dropFirst()
        return lines.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 3, words[3] == "08" else { return nil }
            return words[1].split(separator: ":").last.flatMap { Int($0, radix: 16) }
        }
    }

    @Test func `a body of unknown length takes a new connection to a server that speaks HTTP 1 0`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                var reply = Reply(headers: ["Connection": "keep-alive"], body: .string("got \(request.text)"))
                reply.version = "HTTP/1.0"
                return .reply(reply)
            }
            let transport = try CurlTransport()
            for number in 1...3 {
                let body = RequestBody.writer { try await $0.write("body \(number)") }
                #expect(try await transport.text(server.request(method: .post, body: body)) == "got body \(number)")
            }
            #expect(server.activity.connectionsAccepted == 3)
            let metrics = try await transport.ending(of: server.request(method: .post, body: .string("known"))).metrics
            #expect(metrics.isConnectionReused)
        }
    }

    @Test func `the path of a Unix-domain socket that is too long is named`() async throws {
        let options = TransferOptions.with { $0.connection.unixSocketPath = "/" + String(repeating: "a", count: 107) }
        let error = try await CurlTransport().failure(
            Request(url: try #require(URL(string: "http://localhost/")), options: options))
        #expect(error.context.errno == ENAMETOOLONG)
        #expect("\(error)".contains("longer than 107 bytes"))
    }

    @Test(.exitTest, arguments: [("127.0.0.1", false), ("localhost", false), ("a.invalid", true)])
    func `a lack of descriptors is named`(host: String, isProxy: Bool) async {
        await #expect(processExitsWith: .success) { [host, isProxy] in
            // libcurl opens files when it is first used.
            let transport = try CurlTransport()
            let url = try #require(URL(string: "http://\(host):9/"))
            let options = TransferOptions.with {
                if isProxy { $0.proxy = .proxy(Proxy(.http, host: "proxy.invalid", port: 9)) }
            }
            _ = try await transport.failure(Request(url: url, options: options))
            var limit = rlimit()
            unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = 256
            unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            while dup(0) >= 0 {}
            let error = try await transport.failure(Request(url: url, options: options))
            #expect(error.reason == .cannotConnect(.localAddress))
            try #require(error.context.errno == EMFILE)
        }
    }

    /// The server reads less than a tenth of the body within the idle limit, after libcurl has handed all of it to the
    /// system.
    @Test func `bytes that the system delivers are activity`() async throws {
        let server = try SlowReader(total: 300_000)
        let body = RequestBody.bytes(Data(count: 300_000))
        let options = TransferOptions.with { $0.timeouts.idle = .seconds(1) }
        let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
        async let serving: Void = onThread { server.serve() }
        let text = try await CurlTransport().text(Request(method: .post, url: url, body: body, options: options))
        #expect(text == "ok")
        try await serving
    }
}

/// A server with small buffers that reads 4 KiB every 50 ms.
private final class SlowReader: Sendable {
    let port: Int
    private let socket: Int32
    private let total: Int

    init(total: Int) throws {
        self.total = total
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var size: Int32 = 4096
        unsafe setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = socket
        unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(descriptor, address, length)
                unsafe getsockname(descriptor, address, &length)
            }
        }
        listen(socket, 1)
        port = Int(UInt16(bigEndian: name.sin_port))
        try #require(port > 0)
    }

    deinit {
        close(socket)
    }

    func serve() {
        let connection = accept(socket, nil, nil)
        defer { close(connection) }
        var received = 0
        var buffer = [UInt8](repeating: 0, count: 4096)
        while received < total {
            let count = unsafe recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            received += count
            usleep(50_000)
        }
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        unsafe _ = send(connection, response, response.utf8.count, 0)
    }
}
