// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import Fetch
import FoundationEssentials
import Testing

/// Saving files with the built executable.
@Suite(.timeLimit(.minutes(5))) struct FetchSavingTests {
    private static let bytes = StubServer.generatedBytes(200_000)

    private func with(_ body: (FetchTool, StubServer, _ base: String) async throws -> Void) async throws {
        try await FetchTool.with { tool in
            try await StubServer.with { server in
                try await body(tool, server, String(server.url().absoluteString.dropLast()))
            }
        }
    }

    private func serve(_ file: ServedFile, by server: StubServer) {
        server.fallback { file.script(for: $0) }
    }

    @Test func `Ctrl-C leaves a part that can be resumed, and reports it`() async throws {
        try await with { tool, server, base in
            serve(ServedFile(Self.bytes, pace: .init(bytes: 2_000, every: .milliseconds(20))), by: server)
            let outcome = try await tool.runOnTerminal("-o", "a", base + "/a", at: "a  [")
            #expect(outcome.status == 130)
            #expect(outcome.text.contains(" are in a.part; fetch --continue resumes the download."))
            #expect(try tool.files == ["a.part", "a.part.json"])
            let left = try tool.read("a.part")
            #expect(left == Self.bytes.prefix(left.count))
            #expect(!left.isEmpty)

            serve(ServedFile(Self.bytes), by: server)
            let next = try await tool.run("--continue", "-o", "a", base + "/a")
            #expect(next.status == 0)
            #expect(next.errors.hasPrefix("a: resuming after "))
            #expect(server.activity.requests.last?.headers["Range"] == "bytes=\(left.count)-")
            #expect(try tool.read("a") == Self.bytes)
            #expect(try tool.files == ["a"])
        }
    }

    @Test func `a failure leaves a part that can be resumed with another URL`() async throws {
        try await with { tool, server, base in
            serve(ServedFile(Self.bytes, interruption: .close(after: 50_000)), by: server)
            let outcome = try await tool.run("-o", "a", base + "/a?signature=1")
            #expect(outcome.status == 18)
            #expect(outcome.errors.contains("50.0 kB are in a.part"))
            serve(ServedFile(Self.bytes), by: server)
            #expect(try await tool.run("-s", "-C", "-o", "a", base + "/a?signature=2").errors == "")
            #expect(server.activity.requests.last?.headers["Range"] == "bytes=50000-")
            #expect(try tool.read("a") == Self.bytes)
        }
    }

    @Test func `without --continue the download starts over`() async throws {
        try await with { tool, server, base in
            serve(ServedFile(Self.bytes, interruption: .close(after: 50_000)), by: server)
            _ = try await tool.run("-o", "a", base + "/a")
            serve(ServedFile(Self.bytes), by: server)
            _ = try await tool.run("-o", "a", base + "/a")
            #expect(server.activity.requests.last?.headers["Range"] == nil)
            #expect(try tool.files == ["a"])
        }
    }

    @Test func `a file is saved in segments, also from a mirror that its checksum verifies`() async throws {
        try await with { tool, server, base in
            let bytes = StubServer.generatedBytes(3_000_000)
            serve(ServedFile(bytes), by: server)
            #expect(try await tool.run("--segments", "3", "-o", "a", base + "/a").status == 0)
            #expect(try tool.read("a") == bytes)
            #expect(server.activity.requests.contains { $0.headers["Range"] != nil })
            let digest = try ContentDigest(of: bytes).description
            let outcome = try await tool.run(
                "--segments", "4", "--mirror", base + "/m", "--checksum", digest, "-o", "b", base + "/b")
            #expect(outcome.status == 0)
            #expect(try tool.read("b") == bytes)
            #expect(server.activity.requests.contains { $0.target == "/m" })
            for words in [
                ["--mirror", base + "/m", "-o", "c"], ["--segments", "2"],
                ["--mirror", "m", "--checksum", digest, "-o", "c"],
            ] {
                #expect(try await tool.run(words + [base + "/c"]).status == 2)
            }
        }
    }

    @Test func `an upload that was interrupted is resumed by the next run`() async throws {
        try await with { tool, server, base in
            try Self.bytes.write(to: URL(filePath: tool.directory + "/work/a"))
            server.route(
                "/up", method: "OPTIONS",
                .status(204, headers: ["Tus-Resumable": "1.0.0", "Tus-Extension": "creation"]))
            server.route("/up", method: "POST", .status(201, headers: ["Location": "/u/1"]))
            server.route("/u/1", method: "PATCH", .status(401))
            let first = try await tool.run("--resumable", "-f", "-T", "a", base + "/up")
            #expect(first.status == 22)
            #expect(try tool.files.count == 2)
            server.route("/u/1", method: "HEAD", .status(200, headers: ["Upload-Offset": "150000"]))
            server.route(
                "/u/1", method: "PATCH", .status(200, headers: ["Upload-Offset": "200000"]))
            let next = try await tool.run("--resumable", "-i", "-T", "a", base + "/up")
            #expect(next.status == 0)
            #expect(next.text.hasPrefix("HTTP/1.1 200"))
            let part = try #require(server.activity.requests.last)
            #expect(part.method == "PATCH" && part.body == Self.bytes.suffix(50_000))
            #expect(try tool.files == ["a"])
        }
    }

    @Test func `a checksum is verified`() async throws {
        try await with { tool, server, base in
            server.route("/a", .text("other"))
            let digest = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"
            #expect(try await tool.run("--checksum", "sha256:\(digest)", "-o", "a", base + "/a").status == 0)
            let wrong = "0" + digest.dropFirst()
            let outcome = try await tool.run("--checksum", "sha256:\(wrong)", "-o", "b", base + "/a")
            #expect(outcome.status == 71)
            #expect(outcome.errors.contains(digest) && outcome.errors.contains(wrong))
            #expect(try tool.files == ["a"])
        }
    }

    @Test(arguments: [
        ["--checksum", "sha256:00", "-o", "a"], ["--checksum", "md5:00", "-o", "a"], ["--continue"],
        ["--checksum", "sha256:\(String(repeating: "0", count: 64))"],
    ])
    func `invalid combinations of options are errors`(words: [String]) async throws {
        try await with { tool, server, base in
            let outcome = try await tool.run(words + [base])
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(server.activity.requests.isEmpty)
        }
    }

    @Test func `an error response is not saved`() async throws {
        try await with { tool, server, base in
            server.route("/a", .text("no", status: 404))
            let outcome = try await tool.run("-o", "a", base + "/a")
            #expect(outcome.status == 22)
            #expect(outcome.errors == "fetch: The server answered 404 Not Found.\n")
            #expect(try tool.files == [])
        }
    }

    @Test func `a terminal shows a bar for each file and one for all`() async throws {
        try await with { tool, server, base in
            let drip = Script.drip(bytes: 20_000, every: .milliseconds(50), body: .generated(200_000))
            for name in ["a", "b", "c"] { server.route("/" + name, drip) }
            let outcome = try await tool.runOnTerminal("-O", base + "/a", base + "/b", base + "/c")
            #expect(outcome.status == 0)
            // Four lines with the cursor in the last one. The terminal converts LF to CR LF.
            let screen = outcome.text
            #expect(screen.contains(/a  \[[=> ]+\][^\n]*\r\nb  \[[=> ]+\][^\n]*\r\nc  \[[=> ]+\][^\n]*\r\n0 of 3  \[/))
            #expect(screen.contains("\r\u{1B}[3A\u{1B}[J"))
            #expect(screen.contains("of 600.0 kB"))
            for name in ["a", "b", "c"] { #expect(screen.contains("\(name): 200.0 kB in ")) }
            #expect(try tool.files == ["a", "b", "c"])
        }
    }
}

@Suite struct ProgressLinesTests {
    private func line(_ label: String) -> ProgressLine {
        ProgressLine(label: label, completedBytes: 1, totalBytes: nil, elapsed: .zero, rate: RateEstimate())
    }

    private func labels(_ count: Int, rows: Int) -> [String] {
        ProgressLines(transfers: (1...count).map { line("\($0)") }, total: line("all")).bars(columns: 80, rows: rows)
            .map { $0.hasPrefix("…") ? $0 : String($0.prefix { $0 != " " }) }
    }

    @Test func `all bars are shown if there is room, and the total always`() {
        #expect(labels(3, rows: 24) == ["1", "2", "3", "all"])
        #expect(labels(3, rows: 5) == ["1", "2", "3", "all"])
        #expect(labels(3, rows: 4) == ["1", "… and 2 more", "all"])
        #expect(labels(3, rows: 2) == ["all"])
        #expect(labels(3, rows: 0) == ["all"])
    }
}
