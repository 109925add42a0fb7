// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import Foundation
import Testing

/// Socket options and addresses of connections, as the system reports them.
@Suite(.timeLimit(.minutes(5))) struct SocketsTests {
    private func option(_ name: Int32, at level: Int32, of socket: Int32) -> Int32? {
        var value: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(socket, level, name, &value, &size) == 0 ? value : nil
    }

    @Test(arguments: [(.seconds(7), 7), (.milliseconds(1), 1), (nil, nil)] as [(Duration?, Int32?)])
    func `TCP keep-alive is set from the options, or off`(
        interval: Duration?, seconds: Int32?
    ) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .hang }
            let transport = try CurlTransport()
            let request = server.request(options: .with { $0.connection.tcpKeepAlive = interval })
            let task = Task { _ = try await transport.collect(request) }
            try await server.requests(count: 1)
            let client = try #require(server.clientSocket)
            #expect(option(SO_KEEPALIVE, at: SOL_SOCKET, of: client) == (seconds == nil ? 0 : 1))
            if let seconds {
                #expect(option(TCP_KEEPIDLE, at: Int32(IPPROTO_TCP), of: client) == seconds)
                #expect(option(TCP_KEEPINTVL, at: Int32(IPPROTO_TCP), of: client) == seconds)
            }
            task.cancel()
            _ = await task.result
        }
    }

    @Test func `a proxy can have an IPv6 address`() async throws {
        try await StubServer.with(.init(.ipv6)) { proxy in
            proxy.fallback { _ in .text("from the proxy") }
            let url = try #require(URL(string: "http://origin.invalid/x"))
            let options = TransferOptions().with {
                $0.proxy = .proxy(Proxy(.http, host: "::1", port: proxy.endpoint.port))
            }
            let transport = try CurlTransport()
            #expect(try await transport.text(Request(url: url, options: options)) == "from the proxy")
            #expect(try await proxy.requests(count: 1)[0].target == "http://origin.invalid/x")
        }
    }
}
