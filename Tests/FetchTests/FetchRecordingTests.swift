// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

/// Archives, waterfalls and commands of the built executable.
@Suite(.timeLimit(.minutes(5))) struct FetchRecordingTests {
    @Test func `exchanges are recorded in an archive and shown in a page`() async throws {
        try await FetchTool.with { tool in
            try await StubServer.with { server in
                server.route("/a", .redirect(302, to: "/b"))
                server.route("/b", .text("end"))
                let url = server.url("/a").absoluteString
                let outcome = try await tool.run("--har", "a.har", "--waterfall", "a.html", url)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.text == "end")
                #expect(try tool.files == ["a.har", "a.html"])
                #expect(try HAR(tool.read("a.har")).entries.map(\.response.status) == [302, 200])
                let page = String(decoding: try tool.read("a.html"), as: UTF8.self)
                #expect(page.hasPrefix("<!DOCTYPE html>") && page.contains(server.url("/b").absoluteString))
                _ = try await tool.run("--waterfall", "b.html", url)
                #expect(try tool.files == ["a.har", "a.html", "b.html"])
            }
        }
    }

    @Test func `a failed request is recorded`() async throws {
        try await FetchTool.with { tool in
            let outcome = try await tool.run("--har", "a.har", "http://127.0.0.1:1/")
            #expect(outcome.status == 7)
            let entry = try #require(try HAR(tool.read("a.har")).entries.first)
            #expect(entry.response.status == 0)
            #expect(entry.error?.isEmpty == false)
        }
    }

    @Test func `a killed program leaves an archive of what was complete`() async throws {
        try await FetchTool.with { tool in
            try await StubServer.with { server in
                server.route("/a", .text("end"))
                server.route("/b", .hang)
                try await tool.run(
                    "--har", "a.har", server.url("/a").absoluteString, server.url("/b").absoluteString,
                    killedWhen: {
                        let isWritten = (try? HAR(tool.read("a.har")).entries.isEmpty) == false
                        return isWritten && server.activity.requests.count == 2
                    })
                #expect(try HAR(tool.read("a.har")).entries.map(\.request.url) == [server.url("/a").absoluteString])
            }
        }
    }

    @Test func `an archive that cannot be written is an error before anything is sent`() async throws {
        try await FetchTool.with { tool in
            try await StubServer.with { server in
                let outcome = try await tool.run("--har", "none/a.har", server.url().absoluteString)
                #expect(outcome.status != 0)
                #expect(outcome.errors.hasPrefix("fetch: "))
                #expect(server.activity.requests.isEmpty)
            }
        }
    }

    @Test func `a page that cannot be written is an error, unless a transfer has failed before`() async throws {
        try await FetchTool.with { tool in
            try FileManager.default.createDirectory(
                atPath: tool.directory + "/work/d", withIntermediateDirectories: false)
            try await StubServer.with { server in
                server.route("/", .text("end"))
                let outcome = try await tool.run("--waterfall", "d/", server.url().absoluteString)
                #expect(outcome.status == 23)
                #expect(outcome.errors == "fetch: The output cannot be written: d/ cannot be created.\n")
            }
            let outcome = try await tool.run("--waterfall", "d/", "http://127.0.0.1:1/")
            #expect(outcome.status == 7)
            #expect(outcome.errors.hasSuffix("d/ cannot be created.\n"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: tool.directory + "/work/d") == [])
        }
    }

    @Test func `a command of curl whose reader is gone is no usage error`() async throws {
        try await FetchTool.with { tool in
            let outcome = try await tool.runWithoutReader("--curl", "http://127.0.0.1:1/")
            #expect(outcome.status == 23)
            #expect(outcome.errors == "")
        }
    }

    @Test func `a command of curl is printed instead, and does the same`() async throws {
        try await FetchTool.with { tool in
            try await StubServer.with { server in
                server.fallback { _ in .text("x") }
                let words = ["-d", "a=it's", "-H", "X-Api-Key: secret", server.url("/a?b=1").absoluteString]
                let printed = try await tool.run(["--curl"] + words)
                #expect(printed.status == 0)
                #expect(server.activity.requests.isEmpty)
                #expect(!printed.text.contains("secret") && printed.text.contains("b=1"))
                var command = Command(["sh", "-c", printed.text])
                command.environment = ["PATH": "/usr/bin:/bin"]
                #expect(try await command.run().status == 0)
                _ = try await tool.run(words)
                let sent = server.activity.requests
                #expect(sent.count == 2)
                #expect(sent.map(\.text) == ["a=it's", "a=it's"])
                #expect(sent[0].headers.map(\.name).sorted() == sent[1].headers.map(\.name).sorted())
            }
        }
    }
}
