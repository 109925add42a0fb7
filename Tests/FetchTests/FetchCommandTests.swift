// SPDX-License-Identifier: MIT

import ArgumentParser
import AsyncNetworking
import Fetch
import FoundationEssentials
import Testing

@Suite struct FetchCommandTests {
    private func job(_ words: String...) throws -> FetchJob {
        try #require(try FetchCommand.parse(words).makeJobs().first)
    }

    private func configuration(_ words: String...) throws -> SessionConfiguration {
        try FetchCommand.parse(words + ["http://localhost/"]).makeConfiguration()
    }

    @Test func `a URL without options is fetched with GET and printed`() throws {
        let job = try job("http://localhost/a?b=c")
        #expect(job.request.method == .get)
        #expect(job.request.url.absoluteString == "http://localhost/a?b=c")
        #expect(job.request.headers == [:])
        #expect(job.request.body.length == 0)
        #expect(job.target == .standardOutput(takesBinary: false))
    }

    @Test(arguments: [
        ("example.com/x", "https://example.com/x"), ("localhost:8080/x", "https://localhost:8080/x"),
        ("example.com/login?next=https://a.example/", "https://example.com/login?next=https://a.example/"),
        ("example.com/http://a", "https://example.com/http://a"), ("a.example#b://c", "https://a.example#b://c"),
        ("http://a.example?b", "http://a.example?b"), ("HTTPS://a.example/", "HTTPS://a.example/"),
    ])
    func `the default scheme is https`(text: String, url: String) throws {
        #expect(try job(text).request.url.absoluteString == url)
    }

    @Test func `the total timeout is that of a URL, with its redirects and segments`() throws {
        #expect(try job("-m", "10", "http://localhost/").request.timeout == .seconds(10))
        #expect(try job("http://localhost/").request.timeout == nil)
        #expect(try configuration("-m", "10").timeouts.total == nil)
    }

    @Test func `a dash after -C, as curl needs it, is no URL`() throws {
        #expect(try job("-C", "-", "-O", "http://localhost/a").target == .file("a"))
    }

    @Test func `the commands of the article are valid`() throws {
        let article = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/AsyncNetworking/Documentation.docc/FetchCommand.md").standardized
        let lines = try String(contentsOf: article, encoding: .utf8).split(separator: "\n")
            .filter { $0.hasPrefix("$ fetch ") }
        #expect(lines.count > 5)
        for line in lines {
            // The parts between quotation marks are words.
            let words = line.dropFirst("$ fetch ".count).split(separator: "'").enumerated().flatMap { index, part in
                index.isMultiple(of: 2) ? part.split(separator: " ") : [part]
            }
            #expect(throws: Never.self, "\(line)") { try FetchCommand.parse(words.map(String.init)).makeJobs() }
        }
    }

    private static let methods: [(words: [String], method: String, type: String?)] = [
        (["-d", "a=b"], "POST", "application/x-www-form-urlencoded"),
        (["-d", "a=b", "-d", "c=d"], "POST", "application/x-www-form-urlencoded"),
        (["-d", "<a/>", "-H", "Content-Type: text/xml"], "POST", "text/xml"),
        (["--json", "{}"], "POST", "application/json"),
        (["--json", "{}", "-X", "PATCH"], "PATCH", "application/json"),
        (["-XPUT", "-d", "x"], "PUT", "application/x-www-form-urlencoded"),
        (["-T", "/etc/hostname"], "PUT", nil),
        (["-I"], "HEAD", nil),
        (["-X", "PURGE"], "PURGE", nil),
    ]

    @Test(arguments: methods)
    func `options set the method and the content type`(words: [String], method: String, type: String?) throws {
        let request = try #require(try FetchCommand.parse(words + ["http://localhost/"]).makeJobs().first).request
        #expect(request.method.rawValue == method)
        #expect(request.headers[.contentType] == type)
    }

    @Test func `repeated data are joined by ampersands`() throws {
        #expect(try job("-d", "a=b", "-d", "c", "http://localhost/").request.body.length == 5)
    }

    @Test func `a form is sent as multipart with its boundary in the content type`() throws {
        let request = try job("-F", "a=b", "-F", "f=@/etc/hostname", "http://localhost/").request
        #expect(request.method == .post)
        #expect(request.headers[.contentType]?.hasPrefix("multipart/form-data; boundary=") == true)
        #expect(request.body.isReplayable)
    }

    @Test func `a header field keeps its colons and loses whitespace before its value`() throws {
        let request = try job("-H", "X-Time:  12:30", "-H", "X-Empty:", "http://localhost/").request
        #expect(request.headers.map { "\($0.name)=\($0.value)" } == ["X-Time=12:30", "X-Empty="])
    }

    @Test func `credentials are sent as a Basic authorization field`() throws {
        // RFC 7617 §2.
        let request = try job("-u", "Aladdin:open sesame", "http://localhost/").request
        #expect(request.headers[.authorization] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    }

    @Test func `the name of an uploaded file is appended to a URL that ends with a slash`() throws {
        #expect(try job("-T", "/etc/hostname", "http://localhost/up/").request.url.path() == "/up/hostname")
        #expect(try job("-T", "/etc/hostname", "http://localhost/up").request.url.path() == "/up")
    }

    @Test func `bodies are saved under the given or the remote name`() throws {
        #expect(try job("-o", "x.bin", "http://localhost/").target == .file("x.bin"))
        #expect(try job("-O", "http://localhost/a/b.iso?c").target == .file("b.iso"))
        #expect(try job("-o", "-", "http://localhost/").target == .standardOutput(takesBinary: true))
    }

    @Test(arguments: [
        [], ["-d", "x", "--json", "{}", "http://localhost/"], ["-u", "name", "http://localhost/"],
        ["-H", "no colon", "http://localhost/"], ["-X", "two words", "http://localhost/"],
        ["-o", "x", "http://localhost/", "http://localhost/"], ["-O", "http://localhost/"],
        ["-O", "http://a/x", "http://b/x"], ["-I", "-X", "GET", "http://localhost/"], ["-d", "@", "http://localhost/"],
        ["-d", "@-", "-d", "x", "http://localhost/"], ["-F", "nothing", "http://localhost/"],
        ["--resumable", "http://localhost/"], ["--resumable", "-T", "-", "http://localhost/"],
        ["--resumable", "-T", "/etc/hostname", "-o", "x", "http://localhost/"],
        ["-d", "@-", "http://a/", "http://b/"], ["-T", "-", "http://a/", "http://b/"],
        ["-T", "/dev/stdin", "http://a/", "http://b/"], ["--json", "@-", "http://a/", "http://b/"],
        ["wss://a/", "wss://b/"], ["-I", "-o", "x", "http://a/"], ["-X", "HEAD", "-O", "http://a/x"],
        ["-I", "-C", "-o", "x", "http://a/"], ["-o", "x", "wss://a/"], ["-O", "ws://a/x"], ["-i", "ws://a/"],
        ["--json-lines", "ws://a/"], ["--events", "wss://a/"], ["--max-time", "0", "http://a/"],
        ["--max-time", "inf", "http://a/"], ["--max-time=-1", "http://a/"],
    ])
    func `an invalid command line is rejected`(words: [String]) throws {
        #expect(throws: UsageError.self) { try FetchCommand.parse(words).makeJobs() }
    }

    @Test(arguments: [
        ["--connect-timeout", "nan"], ["--parallel", "0"], ["--http1", "--http2-prior-knowledge"],
        ["--http3", "--http3-only"],
        ["--http1", "--http3"], ["--resolve", "host:x:1.2.3.4"],
        ["-x", "ftp://proxy"], ["-x", "http://"], ["--noproxy", "a,b"], ["--limit-rate", "fast"],
        ["--limit-rate", "0"], ["--limit-rate", "-1k"], ["--limit-rate", "1t"], ["--segments", "0"],
        ["--segments", "65"], ["--segments", "many"],
    ])
    func `invalid connection options are rejected`(words: [String]) throws {
        #expect(throws: (any Error).self) {
            try FetchCommand.parse(words + ["http://localhost/"]).makeConfiguration()
        }
    }

    @Test(
        arguments: [
            ([], .automatic), (["--http1.1"], .http1), (["--http2"], .http2),
            (["--http2-prior-knowledge"], .http2PriorKnowledge),
            (["--http3"], .http3), (["--http3-only"], .http3Only),
        ] as [([String], HTTPVersionPolicy)])
    func `the HTTP version is chosen`(words: [String], expected: HTTPVersionPolicy) throws {
        let configuration = try FetchCommand.parse(words + ["http://localhost/"]).makeConfiguration()
        #expect(configuration.httpVersion == expected)
    }

    @Test(arguments: [
        ("1000", 1_000), ("20k", 20_480), ("1.5M", 1_572_864), ("1G", 1 << 30), ("7B", 7),
    ]) func `the speed is limited in both directions, with curl's units`(text: String, expected: Int) throws {
        let limits = try configuration("--limit-rate", text).speedLimits
        #expect(limits.map(\.bytesReceivedPerSecond) == [expected])
        #expect(limits.map(\.bytesSentPerSecond) == [expected])
    }

    @Test func `segments have connections of their own`() throws {
        #expect(try configuration("--segments", "16").connectionLimits.maximumConnectionsPerHost == 16)
        #expect(try configuration("--segments", "auto").connectionLimits.maximumConnectionsPerHost == 6)
    }

    @Test func `connection options are set in the session configuration`() throws {
        let configuration = try configuration(
            "--cacert", "/ca.pem", "--http1", "--connect-timeout", "2.5", "--unix-socket", "/s",
            "--resolve", "example.com:443:[::1]", "--parallel", "9", "--no-follow")
        #expect(configuration.tls.trustRoots == .file("/ca.pem"))
        #expect(configuration.httpVersion == .http1)
        #expect(configuration.timeouts.connect == .seconds(2.5))
        #expect(configuration.connection.unixSocketPath == "/s")
        #expect(
            configuration.connection.hostOverrides == [.init(host: "example.com", port: 443, address: "::1")])
        #expect(configuration.connectionLimits.maximumConnectionsPerHost == 9)
        #expect(!configuration.redirectPolicy.isEnabled)
    }

    @Test func `a proxy has a scheme, a port and credentials`() throws {
        #expect(
            try configuration("-x", "proxy.example").proxy == .proxy(Proxy(.http, host: "proxy.example", port: 1080)))
        #expect(
            try configuration("-x", "socks5h://u:p@127.0.0.1:9050", "--noproxy", "localhost,.lan").proxy
                == .proxy(
                    Proxy(
                        .socks5h, host: "127.0.0.1", port: 9050, credential: Credential(user: "u", password: "p"),
                        bypass: ["localhost", ".lan"])))
        #expect(try configuration("--noproxy", "*").proxy == .none)
        #expect(try configuration().proxy == .environment)
    }
}
