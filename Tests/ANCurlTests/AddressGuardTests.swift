// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import AsyncNetworkingTesting
import FoundationEssentials
import Testing

@Suite struct AddressGuardTests {
    private func allows(_ address: String, except exceptions: [String] = []) throws -> Bool {
        try #require(try AddressGuard(.publicOnly(except: exceptions))).allows(address)
    }

    @Test func `a policy without rules needs no guard`() throws {
        #expect(try AddressGuard(.any) == nil)
    }

    @Test(arguments: [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255", "198.20.0.0", "223.255.255.255",
        "2606:4700::1111", "2001:200::", "2001:4860:4860::8888", "2a00:1450::", "3fff:1000::",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:0808:0808::1",
    ])
    func `public addresses are allowed`(address: String) throws {
        #expect(try allows(address))
    }

    @Test(arguments: [
        // This host, loopback, private, shared, link-local with a cloud's metadata.
        "0.0.0.0", "0.255.255.255", "127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0",
        "172.31.255.255", "192.168.0.0", "192.168.255.255", "100.64.0.0", "100.127.255.255", "169.254.0.0",
        "169.254.169.254", "169.254.255.255",
        // Protocols, documentation, benchmarks, multicast, reserved, broadcast.
        "192.0.0.0", "192.0.0.255", "192.0.2.1", "192.88.99.1", "198.18.0.0", "198.19.255.255", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        // The same for IPv6.
        "::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "fc00::1", "fd00:ec2::254", "fdff::1", "ff02::1",
        "100::1", "2001::1", "2001:1ff::1", "2001:db8::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1",
        "64:ff9b:1::1", "::8.8.8.8",
        // IPv4 in IPv6.
        "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:169.254.169.254", "64:ff9b::192.168.0.1", "2002:7f00:0001::1",
        "2002:a9fe:a9fe::",
        // No addresses.
        "", "localhost", "127.1", "1.2.3", "1.2.3.4.5", "0x7f.0.0.1", ":", "1.1.1.1\u{0}",
    ])
    func `all others are refused`(address: String) throws {
        #expect(try allows(address) == false)
    }

    @Test func `exceptions are addresses and networks`() throws {
        let exceptions = ["10.1.0.0/16", "192.168.7.9", "fd00:1::/32", "::1", "198.18.1.1/31"]
        for address in ["10.1.2.3", "192.168.7.9", "fd00:1:ffff::1", "::1", "198.18.1.0", "198.18.1.1", "8.8.8.8"] {
            #expect(try allows(address, except: exceptions), "\(address)")
        }
        for address in ["10.2.0.0", "192.168.7.8", "fd00:2::1", "127.0.0.1", "198.18.1.2"] {
            #expect(try allows(address, except: exceptions) == false, "\(address)")
        }
        #expect(try allows("127.0.0.1", except: ["0.0.0.0/0"]))
        #expect(try allows("::1", except: ["0.0.0.0/0"]) == false)
        #expect(try allows("::1", except: ["::/0"]))
    }

    @Test(arguments: [
        "", "localhost", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "::/129", "10.0.0.0/8/8", "10/8",
    ])
    func `what is neither fails the request`(text: String) throws {
        let error = #expect(throws: TransportError.self) { _ = try AddressGuard(.publicOnly(except: [text])) }
        #expect(error?.reason == .invalidRequest("“\(text)” is not an address or a network."))
    }
}

/// The guard where connections are made.
@Suite(.timeLimit(.minutes(5))) struct GuardedConnectionsTests {
    private static func guarded(except exceptions: [String] = []) -> TransferOptions {
        TransferOptions().with {
            $0.proxy = .none
            $0.connection.addresses = .publicOnly(except: exceptions)
        }
    }

    private func refusal(_ transport: CurlTransport, _ url: URL, _ options: TransferOptions) async throws
        -> FailureContext
    {
        let error = await #expect(throws: TransportError.self) {
            _ = try await transport.collect(Request(url: url, options: options))
        }
        #expect(error?.reason == .cannotConnect(.addressForbidden))
        return try #require(error).context
    }

    @Test(arguments: ["127.0.0.1", "localhost"])
    func `a connection to this host is refused, after its name was resolved`(host: String) async throws {
        try await StubServer.with { server in
            server.route("/", .text("inner"))
            let url = server.url("/", host: host)
            let context = try await refusal(CurlTransport(), url, Self.guarded())
            #expect(["127.0.0.1", "::1"].contains(context.address?.host))
            #expect(server.activity.requests.isEmpty)
        }
    }

    @Test func `an exception is allowed`() async throws {
        try await StubServer.with { server in
            server.route("/", .text("inner"))
            let request = Request(url: server.url("/"), options: Self.guarded(except: ["127.0.0.0/8"]))
            let transport = try CurlTransport()
            #expect(try await transport.text(request) == "inner")
        }
    }

    @Test func `a name that another request has connected to is no way around`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("inner") }
            let transport = try CurlTransport()
            _ = try await transport.text(server.request())
            _ = try await refusal(transport, server.url("/"), Self.guarded())
            #expect(server.activity.requests.count == 1)
            // The connection itself is still good for others.
            _ = try await transport.text(server.request())
        }
    }

    @Test func `an override of the host is checked like any address`() async throws {
        try await StubServer.with { server in
            var options = Self.guarded()
            options.connection.hostOverrides = [
                .init(host: "public.example", port: 80, address: "127.0.0.1", addressPort: server.endpoint.port)
            ]
            let url = try #require(URL(string: "http://public.example/"))
            #expect(try await refusal(CurlTransport(), url, options).host == "public.example")
        }
    }

    @Test func `a proxy is what is connected to`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("by proxy") }
            var options = Self.guarded()
            options.proxy = .proxy(Proxy(.http, host: "127.0.0.1", port: server.endpoint.port))
            let url = try #require(URL(string: "http://public.example/"))
            _ = try await refusal(CurlTransport(), url, options)
            options.connection.addresses = .publicOnly(except: ["127.0.0.1"])
            let transport = try CurlTransport()
            #expect(try await transport.text(Request(url: url, options: options)) == "by proxy")
        }
    }
}
