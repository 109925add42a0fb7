// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct RequestTests {
    @Test func `a request is a GET without fields and body by default`() throws {
        let request = try Request(url: .example("http://a/"))
        #expect(request.method == .get)
        #expect(request.headers == [:])
        #expect(request.body.length == 0)
        #expect(request.options == nil)
        #expect(request.sharedOptions == nil)
        #expect(request.trailers == nil)
    }

    @Test func `an attribute has its default value if only others were set`() throws {
        enum Purpose: RequestAttribute {
            static var defaultValue: String? { "browsing" }
        }
        var request = try Request(url: .example("http://a/"))
        #expect(request[Purpose.self] == "browsing")
        request.isLongLived = true
        #expect(request[Purpose.self] == "browsing")
        request[Purpose.self] = nil
        #expect(request[Purpose.self] == nil)
    }

    /// Another request with a method, a URL and a body, and whether it has the role of `GET http://a.example/chat`.
    @Test(arguments: [
        ("GET http://a.example/chat", nil, isCopy: false, true), ("GET http://a.example/chat", nil, isCopy: true, true),
        ("GET http://b.example/chat?ticket=1", nil, isCopy: false, true),
        ("GET http://a.example/config", nil, isCopy: false, false),
        ("GET http://a.example/config", nil, isCopy: true, true),
        ("POST http://a.example/chat", nil, isCopy: false, false),
        ("POST http://a.example/chat", nil, isCopy: true, true),
        ("POST http://a.example/ticket", nil, isCopy: true, false),
        ("GET http://a.example/chat", "body", isCopy: false, false),
        ("GET http://a.example/chat", "body", isCopy: true, true),
        ("GET http://a.example/config", "body", isCopy: true, false),
    ])
    func `a request that is sent in place of another one has its role if it is that one, perhaps modified`(
        line: String, body: String?, isCopy: Bool, hasRole: Bool
    ) throws {
        var request = try Request(url: .example("http://a.example/chat"))
        request.webSocketOptions = WebSocketOptions()
        let (method, url) = try (#require(line.split(separator: " ").first), #require(line.split(separator: " ").last))
        var other = try isCopy ? request : Request(url: .example("http://a.example/"))
        other.method = try #require(HTTPRequest.Method(String(method)))
        other.url = try .example(String(url))
        if let body { other.body = .string(body) }
        #expect(other.keepsRole(of: request) == hasRole)
        other.fillCallAttributes(from: request, keepingRole: hasRole)
        #expect((other.webSocketOptions != nil) == hasRole)
    }

    @Test func `a request without a role gives none, and paths that are empty are those of the root`() throws {
        var request = try Request(url: .example("http://a.example"))
        let other = try Request(method: .post, url: .example("http://a.example/other"))
        #expect(other.keepsRole(of: request))
        request.webSocketOptions = WebSocketOptions()
        #expect(try Request(url: .example("http://b.example/")).keepsRole(of: request))
    }

    @Test func `a change to the options of a copy does not affect the original`() throws {
        var request = try Request(url: .example("http://a/"))
        request.options = TransferOptions().with { $0.maximumBodySize = 1 }
        var copy = request
        #expect(copy.sharedOptions === request.sharedOptions)
        copy.options?.maximumBodySize = 2
        #expect(request.options?.maximumBodySize == 1)
        #expect(copy.options?.maximumBodySize == 2)
        #expect(copy.sharedOptions !== request.sharedOptions)
        copy.options = nil
        #expect(copy.sharedOptions == nil)
    }

    @Test func `changes of options apply to the session's options, or at once to the request's own`() throws {
        let session = SharedTransferOptions(
            TransferOptions().with {
                $0.maximumBodySize = 1
                $0.maximumHeadSize = 2
            })
        var request = try Request(url: .example("http://b/"))
        request.changeOptions { $0.maximumBodySize += 10 }
        request.changeOptions { $0.maximumBodySize *= 2 }
        #expect(request.options == nil)
        #expect(request.options(inheriting: session).value.maximumBodySize == 22)
        #expect(request.options == nil)
        request.inheritOptions(session)
        #expect(request.options?.maximumBodySize == 22)
        #expect(request.options?.maximumHeadSize == 2)
        #expect(session.value.maximumBodySize == 1)
        request.inheritOptions(session)
        #expect(request.options?.maximumBodySize == 22)

        request.changeOptions { $0.maximumBodySize = 5 }
        #expect(request.options?.maximumBodySize == 5)
        #expect(request.options(inheriting: session).value.maximumBodySize == 5)
    }

    @Test func `a request shares inherited options, unless it has its own`() throws {
        let session = SharedTransferOptions(TransferOptions().with { $0.maximumBodySize = 1 })
        var request = try Request(url: .example("http://b/"))
        request.inheritOptions(session)
        #expect(request.sharedOptions === session)

        var own = try Request(url: .example("http://c/"), options: TransferOptions().with { $0.maximumBodySize = 3 })
        own.inheritOptions(session)
        #expect(own.options?.maximumBodySize == 3)
    }

    @Test func `with returns a changed copy`() {
        let options = TransferOptions()
        let changed = options.with { $0.timeouts.total = .seconds(5) }
        #expect(options.timeouts.total == nil)
        #expect(changed.timeouts.total == .seconds(5))
        #expect(changed.with { $0.timeouts.total = nil } == options)
    }

    @Test func `the default options are safe and bounded`() {
        let options = TransferOptions()
        #expect(options.timeouts.connect == .seconds(30))
        #expect(options.timeouts.idle == .seconds(60))
        #expect(options.timeouts.total == nil)
        #expect(options.timeouts.queue == nil)
        #expect(options.tls.minimumVersion == .v1_2)
        #expect(options.tls.trustRoots == .system)
        #expect(options.proxy == .environment)
        #expect(options.maximumBodySize == 134_217_728)
        #expect(options.maximumHeadSize == 307_200)
        #expect(options.decompressionLimit.maximumSize == 1_073_741_824)
        #expect(options.decompressionLimit.maximumRatio == 200)
        #expect(TLSVersion.v1_2 > .v1_1)
    }

    @Test func `a socket address is described with its port`() {
        #expect(SocketAddress(host: "127.0.0.1", port: 80).description == "127.0.0.1:80")
        #expect(SocketAddress(host: "::1", port: 443).description == "[::1]:443")
    }

    @Test func `an override keeps the port by default`() {
        #expect(ConnectionOptions.HostOverride(host: "a", port: 80, address: "1.2.3.4").addressPort == 80)
        #expect(
            ConnectionOptions.HostOverride(host: "a", port: 80, address: "1.2.3.4", addressPort: 81).addressPort == 81)
    }
}
