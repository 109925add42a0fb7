// SPDX-License-Identifier: MIT

import ANCache
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes
import Testing

/// The limits of storing and reusing responses.
@Suite struct CacheBoundariesTests {
    private let origin = Origin()

    init() {
        origin.fields = [.cacheControl: "public, max-age=60", .eTag: "\"a\""]
    }

    // MARK: Users

    @Test func `user information in a URL separates users`() async throws {
        let (one, two) = (origin.manager(), origin.manager())
        let path = "http://ada:secret@a.example/v1/x"
        #expect(try await origin.get(path, from: one) == "1 200 network")
        #expect(try await origin.get(path, from: two) == "1 200 cache")
        #expect(try await origin.get(from: two) == "2 200 network")
        #expect(try await origin.get("http://eve:secret@a.example/v1/x", from: two) == "3 200 network")
    }

    @Test func `a response to a request that an attempt interceptor may have signed stays in its session`() async throws
    {
        struct Signer: Interceptor {
            func intercept(
                _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
            ) async throws {
                var request = interception.request
                request.headers[.authorization] = "Bearer a"
                try await interception.proceed(with: request, respond)
            }
        }
        let signing = origin.manager { $0.attemptInterceptors = [Signer()] }
        #expect(try await origin.get(from: signing) == "1 200 network")
        #expect(try await origin.get(from: signing) == "1 200 cache")
        #expect(try await origin.get(from: origin.manager()) == "2 200 network")
    }

    @Test func `sessions that trust other servers do not share responses`() async throws {
        let careless = origin.manager { $0.tls.policy.validatesDomainName = false }
        let privateRoots = origin.manager { $0.tls.trustRoots = .pem(Data()) }
        #expect(try await origin.get(from: careless) == "1 200 network")
        #expect(try await origin.get(from: origin.manager()) == "2 200 network")
        #expect(try await origin.get(from: privateRoots) == "3 200 network")
        #expect(try await origin.get(from: careless) == "1 200 cache")
    }

    // MARK: Incomplete and partial responses

    @Test func `a truncated body fails as without a cache, and is not stored`() async throws {
        try await StubServer.with { server in
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
            server.route("/", .raw(head + "Content-Length: 10\r\n\r\nabc"), .raw(head + "Content-Length: 3\r\n\r\nabc"))
            let cache = ResponseCache.memory()
            let manager = SessionManager(for: server) { $0.cache = cache }
            await #expect(throws: SessionError.self) { _ = try await origin.get("/", from: manager) }
            #expect(cache.usage.entries == 0)
            var responses: [String] = []
            for _ in 0..<2 { responses.append(try await origin.get("/", from: manager)) }
            #expect(responses == ["abc 200 network", "abc 200 cache"])
        }
    }

    @Test func `neither a part of a response nor a response to HEAD is stored`() async throws {
        let manager = origin.manager()
        origin.respond { _, number in
            MockResponse(
                status: .partialContent,
                headers: [.cacheControl: "max-age=60", .contentRange: "bytes 0-0/9", .eTag: "\"a\""],
                chunks: [Data("\(number)".utf8)])
        }
        #expect(try await origin.get(from: manager, [.range: "bytes=0-0"]) == "1 206 network")
        #expect(try await origin.get(from: manager, [.range: "bytes=0-0"]) == "2 206 network")
        origin.respond { _, _ in .status(.ok, headers: [.cacheControl: "max-age=60"]) }
        _ = try await manager.data(for: try manager.request(.head, "x"))
        #expect(origin.cache.usage.entries == 0)
    }

    @Test func `If-Range with another tag is answered by the whole stored response`() async throws {
        let manager = origin.manager()
        origin.body = { _ in "0123456789" }
        #expect(try await origin.get(from: manager) == "0123456789 200 network")
        let range: HTTPFields = [.range: "bytes=2-4", .ifRange: "\"a\""]
        #expect(try await origin.get(from: manager, range) == "234 206 cache")
        let other: HTTPFields = [.range: "bytes=2-4", .ifRange: "\"b\""]
        #expect(try await origin.get(from: manager, other) == "0123456789 200 cache")
        #expect(try await origin.get(from: manager, [.range: "bytes=0-1,3-4"]) == "0123456789 200 network")
    }

    @Test func `a 304 to the program's own condition is passed on without a stored response`() async throws {
        let manager = origin.manager()
        origin.notModified = true
        #expect(try await origin.get(from: manager, [.ifNoneMatch: "\"a\""]) == " 304 network")
        #expect(origin.cache.usage.entries == 0)
    }

    // MARK: Time

    @Test func `a response is validated if the clock was set back`() async throws {
        let manager = origin.manager()
        #expect(try await origin.get(from: manager) == "1 200 network")
        origin.advance(-10)
        origin.notModified = true
        #expect(try await origin.get(from: manager) == "1 200 validated")
        #expect(try await origin.get(from: manager) == "1 200 cache")
    }

    // MARK: Directories

    @Test func `a removal in one session is a miss in another one on the same directory`() async throws {
        let directory = try TemporaryDirectory()
        origin.body = { number in String(repeating: "\(number)", count: 100_000) }
        origin.cache = .disk(directory.path, memory: 0)
        let one = origin.manager()
        _ = try await origin.get(from: one)
        let first = origin.cache
        origin.cache = .disk(directory.path, memory: 0)
        let two = origin.manager()
        #expect(try await origin.get(from: two).hasSuffix("200 cache"))
        _ = try await origin.get("y", from: one)
        #expect(try await origin.get("y", from: one).hasSuffix("200 cache"))
        // The second cache has not read the directory since.
        origin.cache.removeAll()
        #expect(try await origin.get("y", from: one).hasSuffix("200 network"))
        #expect(try await origin.get(from: one).hasSuffix("200 network"))
        #expect(first.usage.entries == 2)
    }

    @Test func `a directory that disappears costs the responses, and fails no request`() async throws {
        let directory = try TemporaryDirectory()
        origin.body = { number in String(repeating: "\(number % 10)", count: 100_000) }
        origin.cache = .disk(directory.path)
        let manager = origin.manager()
        _ = try await origin.get(from: manager)
        try FileManager.default.removeItem(atPath: directory.path + "/v1")
        for _ in 0..<2 { #expect(try await origin.get(from: manager).hasSuffix("200 network")) }
        try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    }

    // MARK: The program's decision

    @Test func `a body that willCache changes has its own length`() async throws {
        let manager = origin.manager {
            $0.willCache = { proposal in
                var proposal = proposal
                proposal.body += Data("23".utf8)
                return proposal
            }
        }
        origin.fields[.contentLength] = "1"
        #expect(try await origin.get(from: manager) == "1 200 network")
        let second = try await manager.data(for: try manager.request(.get, "x"))
        #expect(second.text == "123")
        #expect(second.headers[.contentLength] == "3")
    }

    // MARK: Shared transfers

    @Test func `a request within the reading of an identical stream does not wait for it`() async throws {
        let manager = origin.manager { $0.sharesTransfers = true }
        try await manager.withResponse(for: try manager.request(.get, "x")) { _, body in
            #expect(try await origin.get(from: manager) == "2 200 network")
            for try await _ in body {}
        }
    }

    @Test func `after the first of identical requests is cancelled, only one of the others is sent`() async throws {
        let manager = origin.manager { $0.sharesTransfers = true }
        let gate = try ScriptGate()
        origin.hold(at: gate)
        let first = Task { try await origin.get(from: manager) }
        try await origin.transport.requests(count: 1)
        let others = (0..<5).map { _ in Task { try await origin.get(from: manager) } }
        others[0].cancel()
        await #expect(throws: CancellationError.self) { _ = try await others[0].value }
        first.cancel()
        await #expect(throws: CancellationError.self) { _ = try await first.value }
        try await origin.transport.requests(count: 2)
        gate.open()
        for other in others.dropFirst() { #expect(try await other.value.hasPrefix("2 200")) }
        #expect(origin.requests.count == 2)
    }

    @Test func `responses that are not stored are not waited for`() async throws {
        let manager = origin.manager { $0.sharesTransfers = true }
        origin.fields = [.cacheControl: "no-store"]
        async let one = origin.get(from: manager)
        async let two = origin.get(from: manager)
        #expect(try await Set([one, two]) == ["1 200 network", "2 200 network"])
    }
}
