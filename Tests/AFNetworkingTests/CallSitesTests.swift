// SPDX-License-Identifier: MIT

import AFNetworking
import AFNetworkingCallSites
import AFNetworkingCallers
import AsyncNetworkingTesting
import Testing

/// Code that was written for AFNetworking 3 and 4 compiles and has the same results.
@Suite(.timeLimit(.minutes(5))) struct CallSitesTests {
    @Test func `there are at least 60 call sites`() {
        #expect(CallSite.all.count >= 60)
    }

    @Test(arguments: CallSite.all)
    func `a call site has the same result as on Apple's platforms`(site: CallSite) async throws {
        try await StubServer.with { server in
            serve(on: server)
            let (reports, continuation) = AsyncStream.makeStream(of: String.self)
            site.run(server.url("/").absoluteString) { continuation.yield($0) }
            var iterator = reports.makeAsyncIterator()
            let report = await iterator.next()
            #expect(report == site.expected)
        }
    }

    @Test func `a view model of language mode 6 makes requests from the main actor`() async throws {
        try await StubServer.with { server in
            serve(on: server)
            server.route("/moved", .redirect(302, to: "/user"))
            let screen = await Screen(baseURL: server.url("/"))
            await screen.load("user")
            #expect(await screen.name == "ada")
            await screen.load("teapot")
            #expect(await screen.name.hasSuffix("(418)"))
            #expect(await screen.codes("teapot") == [-1011, -1011])
            await screen.countRedirects()
            try await screen.loadAsync("moved")
            #expect(await screen.name == "ada")
        }
    }

    private func serve(on server: StubServer) {
        server.fallback { _ in .echo }
        server.route("/text", .text("hello"))
        server.route("/created", .json("{}", status: 201))
        server.route("/missing", .json(#"{"error": "no such user"}"#, status: 404))
        server.route("/teapot", .json("{}", status: 418))
        server.route("/hang", .hang)
        server.route("/user", .json(#"{"name": "ada", "nickname": null}"#))
        server.route("/html-json", .reply(headers: ["Content-Type": "text/html"], body: .string(#"{"status": "ok"}"#)))
        server.route("/xml", .reply(headers: ["Content-Type": "application/xml"], body: .string("<note/>")))
        server.route(
            "/report.bin", .reply(headers: ["Content-Type": "application/json"], body: .generated(100_000)))
        let png = Data(base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAA1IAAAEsCAIAAAA=") ?? Data()
        server.route("/picture.png", .data(png, headers: ["Content-Type": "image/png"]))
        server.route("/redirect", .redirect(302, to: "/target"))
        server.route("/private") { request in
            guard request.headers["Authorization"] == "Basic YWRhOnNlY3JldA==" else {
                return .status(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            }
            return .text("secret")
        }
    }
}
