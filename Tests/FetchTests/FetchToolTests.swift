// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import Testing

/// The built executable with a stub server.
@Suite(.timeLimit(.minutes(5))) struct FetchToolTests {
    private func with(
        _ options: StubServer.Options = .init(), _ body: (FetchTool, StubServer, _ base: String) async throws -> Void
    ) async throws {
        try await FetchTool.with { tool in
            try await StubServer.with(options) { server in
                let base = server.url().absoluteString.dropLast()
                try await body(tool, server, String(base))
            }
        }
    }

    @Test func `a body is printed unchanged`() async throws {
        try await with { tool, server, base in
            server.route("/a", .text("hello"))
            let outcome = try await tool.run(base + "/a")
            #expect(outcome.text == "hello")
            #expect(outcome.errors == "")
            #expect(outcome.status == 0)
        }
    }

    @Test func `a trace shows all that runs, after a signal`() async throws {
        let gate = try ScriptGate()
        try await with { tool, server, base in
            server.route("/a", Script([.wait(gate), .reply(Reply(body: .string("end")))]))
            let outcome = try await tool.run(
                "--trace", base + "/a?key=secret", signalledBy: SIGUSR1,
                when: { try await !server.requests(count: 1).isEmpty }
            ) { gate.open() }
            let tree = outcome.errors.replacing(/127.0.0.1:[0-9]+/, with: "HOST").replacing(
                /[0-9.]+ (ms|s)/, with: "TIME"
            )
            .replacing(/#[0-9]+/, with: "#")
            #expect(
                tree.hasPrefix(
                    """
                    session: 1 task, 1 connection
                    ├── http://HOST
                    │   └── HOST, HTTP/1.1, busy, TIME old
                    │       └── GET http://HOST/a?key=…: response head, after TIME
                    └── tasks
                        └── # GET http://HOST/a?key=…: running

                    """), "\(tree)")
            #expect(outcome.text == "end")
            #expect(outcome.status == 0)
        }
    }

    @Test func `binary bodies are written to a pipe unchanged`() async throws {
        try await with { tool, server, base in
            server.route("/a", .generated(300_000))
            let outcome = try await tool.run(base + "/a")
            #expect(outcome.output == StubServer.generatedBytes(300_000))
        }
    }

    @Test func `the data of events is printed over several connections`() async throws {
        try await with { tool, server, base in
            server.enqueue(.events([ServerSentEvent(type: "x", data: "a\nb", id: "1")], retry: .zero, then: .drop))
            server.enqueue(.events([ServerSentEvent(data: "c")]))
            server.enqueue(.status(204))
            let outcome = try await tool.run("--events", base + "/feed")
            #expect(outcome.text == "a\nb\nc\n")
            #expect(outcome.errors.contains("Reconnecting in "))
            #expect(outcome.status == 0)
            #expect(server.activity.requests.map { $0.headers["Last-Event-ID"] } == [nil, "1", "1"])
            server.enqueue(.json("{}"))
            #expect(try await tool.run("--events", base + "/feed").errors.contains("expected text/event-stream"))
            #expect(try await tool.run("--events", "-O", base + "/feed").status == 2)
        }
    }

    @Test func `the total timeout ends events, also those that would be received over another connection`() async throws
    {
        try await with { tool, server, base in
            server.enqueue(.events([ServerSentEvent(data: "a")], retry: .zero, then: .hang))
            server.enqueue(.status(204))
            let outcome = try await tool.run("--events", "-m", "0.3", base + "/feed")
            #expect(outcome.status == 28)
            #expect(server.activity.requests.count <= 1)
        }
    }

    @Test func `lines of JSON are printed unchanged, and invalid ones reported`() async throws {
        try await with { tool, server, base in
            server.route("/a", .stream(["{ \"a\": 1 }\r\n", "oops\n", "[2]"], type: "application/jsonl"))
            let outcome = try await tool.run("--json-lines", base + "/a")
            #expect(outcome.text == "{ \"a\": 1 }\n[2]\n")
            #expect(outcome.errors.hasPrefix("fetch: Line or text 2 of the stream: "))
            #expect(try await tool.run("--json-lines", "--events", base + "/a").status == 2)
        }
    }

    @Test func `a body is saved and only a notice printed`() async throws {
        try await with { tool, server, base in
            server.route("/a.bin", .generated(300_000))
            let outcome = try await tool.run("-O", base + "/a.bin")
            #expect(outcome.output.isEmpty)
            #expect(outcome.errors.hasPrefix("a.bin: 300.0 kB in "))
            #expect(try tool.read("a.bin") == StubServer.generatedBytes(300_000))
            #expect(try await tool.run("-s", "-o", "b.bin", base + "/a.bin").errors == "")
            #expect(try tool.files == ["a.bin", "b.bin"])
        }
    }

    @Test func `several URLs are fetched concurrently and printed in order`() async throws {
        try await with { tool, server, base in
            let gate = try ScriptGate()
            let first = StubServer.generatedBytes(200_000)
            server.route("/1", Script([.wait(gate), .reply(Reply(body: .bytes(first)))]))
            server.route("/2") { _ in
                gate.open()
                return .text("two")
            }
            server.route("/3", .status(500))
            let outcome = try await tool.run("-f", base + "/1", base + "/2", base + "/3", base + "/2")
            #expect(outcome.output == first + Data("twotwo".utf8))
            #expect(outcome.errors == "fetch: \(base)/3: The server answered 500 Internal Server Error.\n")
            #expect(outcome.status == 22)
        }
    }

    @Test func `more URLs than may run concurrently do not deadlock`() async throws {
        try await with { tool, server, base in
            server.fallback { .text($0.path) }
            let outcome = try await tool.run(
                "--parallel", "2", base + "/1", base + "/2", base + "/3", base + "/4", base + "/5")
            #expect(outcome.text == "/1/2/3/4/5")
        }
    }

    @Test func `standard input is sent as a stream`() async throws {
        try await with { tool, server, base in
            server.route("/", .status(204))
            _ = try await tool.run("-d", "@-", base, input: "some text\n")
            let request = try #require(server.activity.requests.first)
            #expect(request.method == "POST")
            #expect(request.text == "some text\n")
        }
    }

    @Test func `a form reaches the server`() async throws {
        try await with { tool, server, base in
            server.route("/", .status(204))
            _ = try await tool.run("-F", "a=b", "-F", "f=@/dev/null/no", base)
            #expect(server.activity.requests.isEmpty)
            _ = try await tool.run("-F", "a=b", base)
            #expect(server.activity.requests.first?.text.contains("name=\"a\"\r\n\r\nb\r\n--") == true)
        }
    }

    @Test func `heads are printed on request`() async throws {
        try await with { tool, server, base in
            server.route("/old", .redirect(302, to: "/new"))
            server.route("/new", .reply(headers: ["X-A": "b"], body: .string("c")))
            let head = "HTTP/1.1 200 OK\nX-A: b\nContent-Length: 1\n\n"
            #expect(try await tool.run("-I", base + "/new").text == head)
            #expect(try await tool.run("-i", base + "/new").text == head + "c")
            let secret = "http://user:hidden@" + base.dropFirst("http://".count)
            let traced = try await tool.run(
                "--trace", secret + "/new?token=hidden&a=1", "http://user:hidden@127.0.0.1:1/")
            #expect(
                traced.errors.contains("/new?token=…&a=1") && traced.errors.contains("fetch: http://…@127.0.0.1:1/: "))
            #expect(!traced.errors.contains("hidden"), "\(traced.errors)")
            let verbose = try await tool.run("-v", "--trace", base + "/old")
            #expect(verbose.text == "c")
            for line in [
                "> GET /old", "< HTTP/1.1 302 Found", "> GET /new", "< X-A: b", "  first byte", ", reused, HTTP/1.1",
            ] {
                #expect(verbose.errors.contains(line))
            }
            #expect(try await tool.run("--no-follow", "-i", base + "/old").text.hasPrefix("HTTP/1.1 302 Found\n"))
        }
    }

    @Test func `failures have the exit statuses of curl and a message of one sentence`() async throws {
        try await with { tool, server, base in
            server.route("/404", .text("no", status: 404))
            server.route("/hang", .hang)
            server.route("/cut", .truncated(declared: 100, sent: 10))
            server.route("/close", .close)
            let cases: [(words: [String], status: Int32)] = [
                (["-f", base + "/404"], 22), ([base + "/404"], 0), (["-m", "0.1", base + "/hang"], 28),
                (["-o", "x", base + "/cut"], 18), ([base + "/close"], 52), (["http://127.0.0.1:1/"], 7),
                (["ftp://x/"], 1), (["http://"], 3), (["-H", "a b: c", base], 2), (["--bogus"], 2), ([], 2),
                (["-o", "/no/such/directory/x", base + "/404"], 23), (["-T", "/no/such/file", base], 26),
            ]
            for (words, status) in cases {
                let outcome = try await tool.run(words)
                #expect(outcome.status == status, "\(words): \(outcome.errors)")
                #expect(status == 0 || !outcome.errors.isEmpty)
            }
            #expect(try tool.files == [])
        }
    }

    @Test func `a self-signed certificate is rejected, and one of the given authority accepted`() async throws {
        let authority = try TestCertificateAuthority()
        try await with(.init(tls: .init(authority.issue()))) { tool, server, base in
            server.route("/", .text("hello"))
            let refused = try await tool.run(base)
            #expect(refused.status == 60)
            #expect(refused.errors.hasPrefix("fetch: No trusted TLS connection could be made: "))
            try authority.write(to: tool.directory + "/ca.pem")
            #expect(try await tool.run("--cacert", tool.directory + "/ca.pem", base).text == "hello")
        }
    }

    @Test func `SSL_CERT_FILE sets the authorities, and SSLKEYLOGFILE is ignored`() async throws {
        let authority = try TestCertificateAuthority()
        try await with(.init(tls: .init(authority.issue()))) { tool, server, base in
            server.route("/", .text("hello"))
            try authority.write(to: tool.directory + "/ca.pem")
            let keys = tool.directory + "/work/keys.log"
            let outcome = try await tool.run(
                [base], environment: ["SSL_CERT_FILE": tool.directory + "/ca.pem", "SSLKEYLOGFILE": keys])
            #expect(outcome.text == "hello", "\(outcome.errors)")
            // libcurl creates the file at its start but writes nothing to it.
            let logged = try? tool.read("keys.log")
            #expect(logged?.isEmpty != false)
        }
    }

    @Test func `a closed pipe ends the program without a message`() async throws {
        try await with { tool, server, base in
            server.route("/", .generated(10_000_000))
            let outcome = try await tool.runWithoutReader(base)
            #expect(outcome.status == 23)
            #expect(outcome.errors == "")
        }
    }

    @Test(arguments: [["body"], ["--json-lines", "messages"]])
    func `one SIGTERM ends the program while no one reads its output or its messages`(words: [String]) async throws {
        try await with { tool, server, base in
            server.route("/body", .generated(10_000_000))
            let lines = String(repeating: "not JSON\n", count: 4_000)
            server.route("/messages", .stream([lines], type: "application/jsonl"))
            let outcome = try await tool.terminateWithoutReading(
                words.dropLast() + ["\(base)/\(words[words.count - 1])"])
            #expect(outcome.status == 143)
        }
    }

    @Test func `a terminal shows a bar while a file is saved, and a notice at the end`() async throws {
        try await with { tool, server, base in
            server.route("/a", .drip(bytes: 100_000, every: .milliseconds(50), body: .generated(1_000_000)))
            let outcome = try await tool.runOnTerminal("-o", "a", base + "/a")
            #expect(outcome.status == 0)
            #expect(outcome.text.contains("\r\u{1B}[Ka  [="))
            #expect(outcome.text.contains(" of 1.0 MB"))
            #expect(outcome.text.contains("\r\u{1B}[Ka: 1.0 MB in "))
        }
    }

    @Test func `binary bodies are not printed on a terminal`() async throws {
        try await with { tool, server, base in
            server.route("/a", .generated(1000))
            let outcome = try await tool.runOnTerminal(base + "/a")
            #expect(outcome.status == 23)
            #expect(outcome.text.hasPrefix("fetch: Binary data is not"))
            #expect(try await tool.runOnTerminal("-o", "-", base + "/a").output.count >= 1000)
        }
    }

    @Test func `Ctrl-C ends a download without leaving a file`() async throws {
        try await with { tool, server, base in
            server.route("/a", .drip(bytes: 1000, every: .milliseconds(20), body: .generated(1_000_000)))
            let outcome = try await tool.runOnTerminal("-o", "a", base + "/a", at: "a  [")
            #expect(outcome.status == 130)
            #expect(try tool.files == [])
            try await server.activity { $0.requests.first?.isAbandoned == true }
        }
    }

    @Test func `the demo succeeds and leaves no files`() async throws {
        try await FetchTool.with { tool in
            let outcome = try await tool.run("demo")
            #expect(outcome.status == 0, "\(outcome.text)")
            #expect(outcome.text.contains("All 10 steps succeeded"))
            #expect(try tool.files == [])
        }
    }

    @Test func `the demo runs with a URL`() async throws {
        try await with { tool, server, base in
            server.fallback { _ in .text("hello\n") }
            let outcome = try await tool.run("demo", base + "/x")
            #expect(outcome.status == 0, "\(outcome.text)")
            #expect(Set(server.activity.requests.map(\.method)) == ["GET", "HEAD", "POST", "PUT"])
        }
    }
}
