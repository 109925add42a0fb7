// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct CurlCommandTests {
    /// The command of a request, as one line, without the options that every command has.
    private func command(
        _ method: HTTPRequest.Method = .get, _ text: String = "http://a.example/", _ headers: HTTPFields = [:],
        body: RequestBody = .none, redacting: Bool = false,
        change: (inout Request) -> Void = { _ in },
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> String {
        var configuration = SessionConfiguration.on(MockTransport(.text("x"))) {
            $0.timeouts.connect = nil
            $0.timeouts.idle = nil
            $0.redirectPolicy.isEnabled = false
            $0.decodesContent = false
        }
        configure(&configuration)
        let manager = SessionManager(configuration)
        var request = Request(method: method, url: try url(text), headers: headers, body: body)
        change(&request)
        return try await manager.curlCommand(for: request, redacting: redacting)
            .replacing(" \\\n   ", with: "").replacing(" --header User-Agent:", with: "")
    }

    @Test func `a method is named if curl does not choose it`() async throws {
        #expect(try await command() == "curl http://a.example/")
        #expect(try await command(.head) == "curl --head http://a.example/")
        #expect(try await command(.delete) == "curl --request DELETE http://a.example/")
        #expect(
            try await command(.post)
                == "curl --header Content-Type: --header Expect: --data-raw '' http://a.example/")
        #expect(try await command(.put, body: .string("x")).hasPrefix("curl --request PUT "))
        #expect(try await command(.get, body: .string("x")).hasPrefix("curl --request GET "))
    }

    @Test func `the URL is that of a host that requires https, and its credential the one for http`() async throws {
        let base = try url("http://a.example/")
        let manager = SessionManager(on: MockTransport(.text("x"))) {
            $0.authentication.credentials[base] = Credential(user: "ada", password: "lovelace", schemes: [.basic])
        }
        manager.strictTransport.set(try #require(StrictTransportHost(host: "a.example")))
        let command = try await manager.curlCommand(for: Request(url: base), redacting: false)
        #expect(command.contains(" https://a.example/") && !command.contains("http://"))
        #expect(command.contains("ada:lovelace"))
    }

    @Test(
        arguments: [
            (.reload, "no-cache"), (.revalidate, "max-age=0"), (.protocolPolicy, nil), (.returnCacheDontLoad, nil),
        ] as [(CachePolicy, String?)])
    func `the cache policy adds its field`(policy: CachePolicy, directive: String?) async throws {
        let expected = directive.map { "--header 'Cache-Control: \($0)' " } ?? ""
        #expect(try await command(change: { $0.cachePolicy = policy }) == "curl \(expected)http://a.example/")
        #expect(try await command(configure: { $0.cachePolicy = policy }) == "curl \(expected)http://a.example/")
    }

    @Test func `fields are quoted, and one that is not text is written by printf`() async throws {
        let headers: HTTPFields = [.accept: "a 'b' \"c\" $d `e` \\f"]
        #expect(try await command(headers: headers).contains(#"--header 'Accept: a '\''b'\'' "c" $d `e` \f'"#))
        #expect(try await command(headers: [.accept: ""]).contains("--header 'Accept;'"))
        #expect(
            try await command(headers: [.proxyAuthorization: "Basic YTpi"])
                .contains("--proxy-header 'Proxy-Authorization: Basic YTpi'"))
    }

    @Test(
        arguments: [
            ("http://a.example/", true, true), ("http://a.example/", false, false), ("https://a.example/", false, true),
        ]
    )
    func `curl follows redirects with the field for a proxy if the proxy stays the same`(
        url: String, hasProxy: Bool, isFollowed: Bool
    ) async throws {
        let text = try await command(
            .get, url, [.proxyAuthorization: "Bearer p"],
            configure: {
                $0.redirectPolicy.isEnabled = true
                if hasProxy { $0.proxy = .proxy(Proxy(.http, host: "proxy.example", port: 1)) }
            })
        #expect(text.contains("--location") == isFollowed)
    }

    private func command(headers: HTTPFields) async throws -> String {
        try await command(.get, "http://a.example/", headers)
    }

    @Test(
        arguments: [
            (RequestBody.string("a b"), "--data-raw 'a b'"), (.string("@x"), "--data-raw @x"),
            (.string("it's\n"), "--data-raw 'it'\\''s\n'"), (.file("/tmp/x y"), "--data-binary '@/tmp/x y'"),
            (.file("-"), "--data-binary @./-"), (.json(["a": 1]), "--data-raw '{\"a\":1}'"),
        ] as [(RequestBody, String)])
    func `a body is an argument, or a file`(body: RequestBody, expected: String) async throws {
        #expect(try await command(.post, body: body).contains(expected))
    }

    /// To `String`, the mark of punctuation that another scalar follows or precedes is a part of a character.
    @Test(arguments: ["'\u{301}; echo secret #", "\u{600}'; echo secret #", "'\u{200D}'", "\u{FE0F}'$(echo secret)'"])
    func `a shell passes a body on as it is`(body: String) async throws {
        let text = try await command(.post, body: .string(body))
        let outcome = try await Command("sh", "-c", "curl() { printf '%s\\n' \"$@\"; }\n\(text)").run()
        #expect(outcome.text.utf8.split(separator: 0x0A).contains { $0.elementsEqual(body.utf8) }, "\(outcome.text)")
    }

    @Test func `a body that is not text is passed through printf`() async throws {
        let text = try await command(.post, body: .bytes(Data([0x00, 0xFF, 0x25, 0x27, 0x5C, 0x0A, 0x41])))
        #expect(text.hasPrefix(#"printf '\000\377%%\047\134\nA' | curl "#))
        #expect(text.contains("--data-binary @- "))
    }

    @Test(arguments: ["http://a.example/", "http://b.example/"])
    func `the codings that the session accepts are named, also for a signed request`(text: String) async throws {
        let manager = SessionManager {
            var key = AWSSignature(accessKeyID: "id", secretAccessKey: "secret", region: "r", service: "s")
            key.hosts = ["a.example"]
            $0.authentication.signatures = [key]
        }
        let command = try await manager.curlCommand(for: Request(url: url(text)), redacting: false)
        #expect(command.contains("--aws-sigv4") == (text == "http://a.example/"))
        #expect(command.contains("Accept-Encoding: "))
    }

    @Test func `a part of a representation is asked for without a coding`() async throws {
        let request = Request(url: try url("http://a.example/"), headers: [.range: "bytes=1-"])
        #expect(try await SessionManager().curlCommand(for: request).contains("'Accept-Encoding: identity'"))
    }

    @Test func `a compressed body is shown without its compression if secrets are hidden`() async throws {
        func command(redacting: Bool, coding: String?) async throws -> String {
            try await self.command(
                .post, "http://a.example/", [.contentType: "application/json"],
                body: .string(#"{"password":"SECRET"}"#),
                redacting: redacting
            ) {
                if let coding { $0.headers[.contentEncoding] = coding }
                $0.compressBody(minimumSize: 0)
            }
        }
        let shown = try await command(redacting: true, coding: nil)
        #expect(shown.hasPrefix("# not expressed: the compression of the body\ncurl "))
        #expect(shown.contains(#"--data-raw '{"password":"…"}'"#) && !shown.contains("Content-Encoding"))
        let unknown = try await command(redacting: true, coding: "br")
        #expect(
            unknown.hasPrefix("# not expressed: the body in the coding br, in which secrets cannot be found\ncurl "))
        #expect(unknown.contains("--data-raw '…' "))
        #expect(!(shown + unknown).contains("SECRET"))
        let exact = try await command(redacting: false, coding: nil)
        #expect(exact.hasPrefix(#"printf '\037\213"#) && exact.contains("--header 'Content-Encoding: gzip'"))
    }

    @Test func `a body that can be read only once comes from standard input`() async throws {
        let text = try await command(.post, body: .writer { try await $0.write("x") })
        #expect(text.hasPrefix("# not expressed: the body, which is read from standard input\ncurl "))
        #expect(text.contains("--header 'Transfer-Encoding: chunked'"))
    }

    /// A change of the configuration, and the options of curl that follow from it.
    struct Case: Sendable {
        let text: String
        let change: @Sendable (inout SessionConfiguration) -> Void

        init(_ text: String, _ change: @escaping @Sendable (inout SessionConfiguration) -> Void) {
            self.text = text
            self.change = change
        }
    }

    private static let proxy = Proxy(
        .socks5h, host: "::1", port: 1, credential: Credential(user: "u", password: "p w"), bypass: ["a", "b"])

    private static let cases = [
        Case("--http2") { $0.httpVersion = .http2 }, Case("--http1.1") { $0.httpVersion = .http1 },
        Case("--connect-timeout 1.500") { $0.timeouts.connect = .milliseconds(1500) },
        Case("--connect-timeout 3153600000") { $0.timeouts.connect = .seconds(Int64.max) },
        Case("--connect-timeout 0.001") { $0.timeouts.connect = .seconds(Int64.min) },
        Case("--max-time 0.001") { $0.timeouts.total = .seconds(Int64.min) },
        Case("--max-time 3153600000") { $0.timeouts.total = .seconds(Int64.max) },
        Case("--speed-limit 1 --speed-time 3153600000") { $0.timeouts.idle = .seconds(Int64.max) },
        Case("--keepalive-time 3153600000") { $0.connection.tcpKeepAlive = .seconds(Int64.max) },
        Case("--max-time 9") { $0.timeouts.total = .seconds(9) },
        Case("--speed-limit 1 --speed-time 7") { $0.timeouts.idle = .seconds(7) },
        Case("--noproxy '*'") { $0.proxy = .none },
        Case("--proxy 'socks5h://[::1]:1' --socks5-basic --proxy-user 'u:p w' --noproxy a,b") {
            $0.proxy = .proxy(proxy)
        },
        Case("--unix-socket /run/s") { $0.connection.unixSocketPath = "/run/s" },
        Case("--ipv6") { $0.connection.ipVersion = .v6 }, Case("--no-keepalive") { $0.connection.tcpKeepAlive = nil },
        Case("--connect-to 'a.example:443:[::1]:8'") {
            $0.connection.hostOverrides = [.init(host: "a.example", port: 443, address: "::1", addressPort: 8)]
        },
        Case("--cacert /ca.pem --capath /proc/self/task") { $0.tls.trustRoots = .file("/ca.pem") },
        Case("--proxy https://p:1 --proxy-cacert /ca.pem --proxy-capath /proc/self/task --noproxy ''") {
            $0.proxy = .proxy(Proxy(.https, host: "p", port: 1))
            $0.tls.trustRoots = .file("/ca.pem")
        },
        Case("--tlsv1.3") { $0.tls.minimumVersion = .v1_3 }, Case("--tls-max 1.2") { $0.tls.maximumVersion = .v1_2 },
        Case("--no-sessionid") { $0.tls.resumesSessions = false },
        Case("--cert c --key k --pass s") {
            $0.tls.identity = .pem(certificates: .file("c"), key: .file("k"), passphrase: "s")
        },
        Case(#"--cert 'c\:\\1' --key 'k:\1'"#) {
            $0.tls.identity = .pem(certificates: .file(#"c:\1"#), key: .file(#"k:\1"#))
        },
        Case("--cert-type P12 --cert c") { $0.tls.identity = .pkcs12(.file("c")) },
        Case("--insecure") {
            $0.tls.policy.allowsInvalidCertificates = true
            $0.tls.policy.validatesDomainName = false
        },
        Case("--location --max-redirs 3 --proto-redir '=https'") {
            $0.redirectPolicy.isEnabled = true
            $0.redirectPolicy.maximum = 3
        },
        Case("--cert-status") { $0.tls.policy.stapling = .required },
        Case("--compressed") { $0.decodesContent = true },
    ]

    @Test(arguments: cases)
    func `transfer options are those of curl`(of test: Case) async throws {
        #expect(try await command(.get, "https://a.example/", configure: test.change).contains(" \(test.text) "))
    }

    private static let notes = [
        Case("the limits of the speed") { $0.speedLimits = [SpeedLimit(bytesReceivedPerSecond: 9)] },
        Case("the certificates that the security policy allows") { $0.tls.policy.allowsInvalidCertificates = true },
        Case("the certificates that the security policy allows") { $0.tls.policy.validatesDomainName = false },
        Case("the verification of a certificate status that the server need not send") {
            $0.tls.policy.stapling = .preferred
        },
        Case("what interceptors change") { $0.interceptors = [Intercepting { try await $1($0) }] },
        Case("what interceptors change") { $0.attemptInterceptors = [Intercepting { try await $1($0) }] },
        Case("the token of an authenticator") {
            guard let url = URL(string: "https://a.example/") else { return }
            $0.authentication.authenticators = [Authenticator(for: [url]) { _ in throw Planned() }]
            // It would not be sent.
            $0.authentication.credentials[url] = Credential(user: "u", password: "p")
        },
        Case("the answers of a challenge handler") { $0.authentication.challengeHandler = { _ in .cancel } },
        Case("the trusted authorities of the proxy, which are in memory") {
            $0.proxy = .proxy(Proxy(.https, host: "p", port: 1))
            $0.tls.trustRoots = .pem(Data())
        },
        Case("the decision about redirects") {
            $0.redirectPolicy.isEnabled = true
            $0.redirectPolicy.decision = { $0.proposed }
        },
        Case("redirects, at which curl would send secret header fields to other origins") {
            $0.redirectPolicy.isEnabled = true
            $0.redirectPolicy.sensitiveHeaders.insert(.init(constant: "X-Key"))
            $0.headers.append(HTTPField(name: .init(constant: "X-Key"), value: "k"))
        },
        Case("redirects, at which curl would use the TLS options of the host for others") {
            $0.redirectPolicy.isEnabled = true
            $0.tls.hostPolicies["a.example"] = SecurityPolicy()
        },
        Case("the file of the TLS secrets") { $0.tls.keyLogPath = "/k" },
        Case("that refused servers are only reported") { $0.tls.policy.isAudited = true },
        Case("the time for which certificates are verified") { $0.tls.policy.verificationTime = .now },
        Case("the time at which the pins expire") { $0.tls.policy.pinExpiry = .now },
    ]

    @Test(arguments: notes)
    func `options that curl lacks are named`(of test: Case) async throws {
        let text = try await command(.get, "https://a.example/", configure: test.change)
        #expect(text.hasPrefix("# not expressed: \(test.text)\n"), "\(text)")
        for option in ["--insecure", "--cert-status", "--user"] { #expect(!text.contains(option)) }
        #expect(text.contains("--location") == text.contains("decision"))
    }

    @Test(arguments: [false, true])
    func `a password of a .netrc file is shown only if the request is sent to the local machine`(usesProxy: Bool)
        async throws
    {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data("machine localhost login ada password x".utf8), to: "netrc")
        let session = SessionManager(on: MockTransport(.text(""))) {
            $0.authentication.netrcFile = path
            if usesProxy { $0.proxy = .proxy(Proxy(.http, host: "p.example", port: 1)) }
        }
        let command = try await session.curlCommand(for: Request(url: url("http://localhost/")), redacting: false)
        #expect(command.contains("ada") != usesProxy, "\(command)")
    }

    @Test func `redirects to https are followed from http, too, with the options of TLS`() async throws {
        let text = try await command(configure: {
            $0.redirectPolicy = RedirectPolicy()
            $0.tls.trustRoots = .file("/ca.pem")
        })
        #expect(text.contains(" --location --max-redirs 20 --proto-redir '=http,https' --cacert /ca.pem "))
    }

    @Test(arguments: ["@a", "a"])
    func `a cookie is neither the name of a file nor sent to other hosts`(name: String) async throws {
        let text = try await command(.get, "http://a.example/", [.cookie: "\(name)=b"])
        #expect(text == "curl --header 'Cookie: \(name)=b' http://a.example/")
    }

    @Test func `a body too long for a command comes from standard input`() async throws {
        let note = "# not expressed: the body, which is read from standard input\n"
        for redacting in [true, false] {
            for (size, isLong) in [(1 << 20, false), (1 << 20 + 1, true)] {
                let text = try await command(
                    .post, body: .bytes(Data(repeating: 1, count: size)), redacting: redacting)
                #expect(text.hasPrefix(note) == isLong)
                #expect(text.hasPrefix("printf ") == !isLong)
            }
        }
        let text = try await command(
            .post, body: .bytes(Data(repeating: 97, count: 1 << 20 + 1)), redacting: true,
            change: { $0.compressBody(minimumSize: 0) })
        #expect(text.hasPrefix(note))
        #expect(text.contains("--header 'Content-Encoding: gzip'"))
    }

    @Test func `dot segments are removed as the session does, and a body with HEAD is named`() async throws {
        #expect(try await command(.get, "http://a.example/a/%2e%2e/b") == "curl http://a.example/b")
        let head = try await command(.head, body: .string("x"))
        #expect(head.hasPrefix("# not expressed: that a response to HEAD has no body, for which curl waits\n"))
    }

    @Test func `exceptions from the proxy are spelled as curl does`() async throws {
        let proxy = Proxy(.http, host: "p", port: 1, bypass: ["*.corp", "a.example:8080", "fd00::1", "b"])
        let text = try await command(configure: { $0.proxy = .proxy(proxy) })
        #expect(text.contains(" --noproxy .corp,fd00::1,b "))
        #expect(text.hasPrefix("# not expressed: the exceptions from the proxy that have a port\n"))
    }

    @Test func `an empty body is sent without asking first`() async throws {
        let empty = try await command(.post, configure: { $0.expectContinueTimeout = .seconds(1) })
        #expect(empty.contains(" --header Expect: ") && !empty.contains("100-continue"))
        let other = try await command(.post, body: .string("x"), configure: { $0.expectContinueTimeout = .seconds(1) })
        #expect(other.contains("'Expect: 100-continue' --expect100-timeout 1 "))
    }

    @Test func `pins are named as far as curl has them`() async throws {
        let pin = try PublicKeyPin(sha256: Data(repeating: 0, count: 32))
        let text = try await command(
            .get, "https://a.example/", configure: { $0.tls.policy = .pinning([pin], backups: [pin]) })
        let name = "sha256//" + Data(repeating: 0, count: 32).base64EncodedString()
        #expect(text.contains("--pinnedpubkey '\(name);\(name)'"))
        #expect(text.hasPrefix("# not expressed: pins of authorities"))
        let http = try await command(configure: { $0.tls.policy = .pinning([pin], backups: []) })
        #expect(!http.contains("pinned"))
    }

    @Test(
        arguments: [
            (nil, "--basic --digest --ntlm --user u:p "), ([.basic], "--basic --user u:p "),
            ([.digest], "--digest --user u:p "), ([.digest, .negotiate], "--digest --negotiate --user u:p "),
            ([], ""),
        ] as [(Set<AuthenticationScheme>?, String)])
    func `a credential is that of the request, for its schemes only`(
        schemes: Set<AuthenticationScheme>?, expected: String
    ) async throws {
        let text = try await command(change: {
            $0.credential = Credential(user: "u", password: "p", schemes: schemes)
        })
        #expect(text == "curl \(expected)http://a.example/")
    }

    @Test(
        arguments: [
            (nil, ""), ([.basic], "--proxy-basic "), ([.digest, .ntlm], "--proxy-digest "), ([], nil),
        ] as [(Set<AuthenticationScheme>?, String?)])
    func `a credential for a proxy has one scheme`(schemes: Set<AuthenticationScheme>?, option: String?) async throws {
        let credential = Credential(user: "u", password: "p", schemes: schemes)
        let text = try await command(configure: {
            $0.proxy = .proxy(Proxy(.http, host: "p", port: 1, credential: credential, bypass: ["b"]))
        })
        let expected = option.map { "\($0)--proxy-user u:p " } ?? ""
        #expect(text.hasSuffix("curl --proxy http://p:1 \(expected)--noproxy b http://a.example/"), "\(text)")
        let note = "# not expressed: the other authentication schemes for the proxy\n"
        #expect(text.hasPrefix(note) == ((schemes?.count ?? 0) > 1))
    }

    @Test func `secrets are hidden unless asked`() async throws {
        func text(redacting: Bool) async throws -> String {
            try await command(
                .post, "https://u:SECRET@a.example/?token=SECRET&page=2",
                [.authorization: "Bearer SECRET", .cookie: "a=SECRET"],
                body: .string("password=SECRET&x=1"), redacting: redacting,
                change: { $0.headers[.contentType] = "application/x-www-form-urlencoded" },
                configure: {
                    $0.proxy = .proxy(
                        Proxy(.http, host: "p", port: 1, credential: Credential(user: "u", password: "SECRET")))
                    $0.tls.identity = .pem(certificates: .file("c"), key: .file("k"), passphrase: "SECRET")
                    $0.headers.append(HTTPField(name: .init(constant: "X-Api-Key"), value: "SECRET"))
                })
        }
        let hidden = try await text(redacting: true)
        #expect(!hidden.contains("SECRET"))
        #expect(hidden.contains("page=2") && hidden.contains("x=1") && hidden.contains("Bearer …"))
        #expect(try await text(redacting: false).ranges(of: "SECRET").count == 8)
    }

    // MARK: Over the wire

    /// A request as a server received it.
    private struct Received: Equatable {
        var method: String
        var target: String
        var headers: [String]
        var body: Data
    }

    private func received(_ server: StubServer) throws -> Received {
        let request = try #require(server.activity.requests.last)
        return Received(
            method: request.method, target: request.target,
            headers: request.headers.map(\.description).filter { !$0.hasPrefix("Host:") }.sorted(),
            body: request.body)
    }

    private static var form: MultipartFormData {
        get throws {
            var form = MultipartFormData()
            form.append("it's", name: "a")
            try form.append(Data([0, 1, 0xFF]), name: "b", fileName: "x.bin", mediaType: "application/octet-stream")
            return form
        }
    }

    @Test(
        arguments: [
            (.get, "/a?b=%20c&d=[1]", [:], .none), (.head, "/", [:], .none), (.delete, "/x", [:], .none),
            (.post, "/", [:], .none), (.post, "/it's/$HOME", [.accept: "a'b\"c$d`e\\f!"], .string("@it's\n\n%s\\n")),
            (.put, "/", [.userAgent: "me", .accept: ""], .bytes(Data(0...255))), (.patch, "/", [:], .bytes(Data())),
            (.delete, "/", [:], .string("x")), (.get, "/", [.cookie: "a=b"], .string("body of GET")),
            (.post, "/", [:], .json(["a": "ä'"])), (.post, "/", [:], .bytes(Data("--x\0".utf8))),
            (.post, "/", [:], .bytes(Data(repeating: 0x41, count: 200_000))),
            (.post, "/", [:], .stream(AsyncStreamOf([Data("a".utf8), Data("b".utf8)]), isReplayable: true)),
            (.init("PURGE") ?? .get, "/", [.contentType: "text/plain"], .string("x")),
        ] as [(HTTPRequest.Method, String, HTTPFields, RequestBody)])
    func `the command sends what the session sends, byte by byte`(
        method: HTTPRequest.Method, path: String, headers: HTTPFields, body: RequestBody
    ) async throws {
        try await check(Request(method: method, url: try url("http://a.example" + path), headers: headers, body: body))
    }

    @Test func `the command sends forms and files as the session does`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data((0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }), to: "a 'b'")
        let target = try url("http://a.example/")
        // Each form that the session encodes has a boundary of its own.
        let (contentType, body) = try Self.form.makeBody()
        try await check(Request(method: .post, url: target, headers: [.contentType: contentType], body: body))
        try await check(Request(method: .post, url: target, body: .file(path)))
    }

    @Test func `a field that is not UTF-8 is sent as its bytes`() async throws {
        let field = try JSONDecoder().decode(
            HTTPField.self, from: Data(#"{"name":"X-Raw","value":"aÿb"}"#.utf8))
        var request = Request(url: try url("http://a.example/"))
        request.headers.append(field)
        try await check(request)
    }

    @Test func `credentials and cookies are sent as the session does`() async throws {
        var request = Request(url: try url("http://u:p%40@a.example/"), headers: [.cookie: "own=1"])
        try await check(request, cookies: ["stored=2; Path=/"])
        // curl would read a file of this name.
        try await check(Request(url: try url("http://a.example/"), headers: [.cookie: "nameless"]))
        request = Request(url: try url("http://a.example/"))
        request.credential = Credential(user: "ä", password: "p'\"", schemes: [.basic])
        try await check(request)
    }

    private func check(_ request: Request, cookies: [String] = []) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("x") }
            let manager = SessionManager {
                $0.proxy = .none
                $0.connection.hostOverrides = [
                    .init(host: "", port: 80, address: "127.0.0.1", addressPort: server.endpoint.port)
                ]
            }
            for cookie in cookies {
                try await manager.cookies.set(try #require(Cookie(setCookie: cookie, from: request.url)))
            }
            let text = try await manager.curlCommand(for: request, redacting: false)
            _ = try await manager.data(for: request)
            let own = try received(server)
            let directory = try TemporaryDirectory()
            let script = text + " --silent --show-error --output /dev/null\n"
            var command = Command(["sh", try directory.write(Data(script.utf8), to: "script")])
            command.environment = ["PATH": "/usr/bin:/bin"]
            let outcome = try await command.run()
            #expect(outcome.status == 0, "\(outcome.text)\n\(text)")
            #expect(server.activity.requests.count == 2)
            #expect(try received(server) == own, "\(text)")
        }
    }
}
