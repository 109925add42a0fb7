// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct SignaturesTests {
    /// The key of the examples in Amazon's documentation.
    private static let signature: AWSSignature = {
        var signature = AWSSignature(
            accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            region: "us-east-1", service: "service")
        signature.hosts = ["example.amazonaws.com"]
        return signature
    }()
    private static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    private func manager(
        for server: StubServer, change: (inout AWSSignature) -> Void = { _ in },
        configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionManager {
        var signature = Self.signature
        change(&signature)
        return SessionManager(
            SessionConfiguration(baseURL: URL(string: "http://example.amazonaws.com/")) {
                $0.proxy = .none
                $0.sendsDefaultHeaders = false
                $0.authentication.signatures = [signature]
                $0.connection.hostOverrides = ["example.amazonaws.com", "b.example"].map {
                    ConnectionOptions.HostOverride(
                        host: $0, port: 80, address: "127.0.0.1", addressPort: Int(server.endpoint.port))
                }
                configure(&$0)
            })
    }

    private let date: HTTPFields = [HTTPField.Name(constant: "x-amz-date"): "20150830T123600Z"]

    // The expected signatures were computed by an independent Python implementation of Amazon's documentation.
    @Test(arguments: [
        ("/", "726c5c4879a6b4ccbbd3b24edbd6b8826d34f87450fbbf4e85546fc7ba9c1642"),
        ("/?Param2=value2&Param1=value1", "311c7f58b10b06de8540bb5a27f441ee0609f1d5ad7b191e68d7ea87d90e3d6b"),
        ("/?flag", "71a4d556877f57287d0b30db40f3d240a628e2dd15f47894334c9a5e8ebefd0d"),
    ])
    func `a request is signed`(target: String, expected: String) async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("end") }
            _ = try await manager(for: server).get(target, headers: date)
            let request = try #require(server.activity.requests.first)
            #expect(request.headers["x-amz-content-sha256"] == Self.emptyHash)
            #expect(
                request.headers["Authorization"]
                    == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                    + "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=\(expected)")
        }
    }

    @Test func `a presigned URL is not signed again`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("end") }
            let target = "/x?X-Amz-Signature=a&b"
            _ = try await manager(for: server).get(target)
            let request = try #require(server.activity.requests.first)
            #expect(request.headers["Authorization"] == nil)
            #expect(request.target == target)
        }
    }

    @Test func `bodies of data and files are hashed, and sent`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data("hello".utf8), to: "body")
        for body in [RequestBody.string("hello"), .file(path)] {
            try await StubServer.with { server in
                server.fallback { _ in .text("end") }
                let manager = manager(for: server) { $0.sessionToken = "token" }
                _ = try await manager.data(for: manager.request(.put, "x", body: body))
                let request = try #require(server.activity.requests.first)
                #expect(request.text == "hello")
                #expect(
                    request.headers["x-amz-content-sha256"]
                        == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
                #expect(request.headers["x-amz-security-token"] == "token")
                let field = try #require(request.headers["Authorization"])
                #expect(field.contains("host;x-amz-content-sha256;x-amz-date;x-amz-security-token"))
            }
        }
    }

    /// Hashing the file would take hours.
    @MainActor @Test(arguments: ["its task", "its time", "its session"])
    func `the hash of a file ends with the request, and the main actor is free meanwhile`(end: String) async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data(), to: "body")
        try unsafe #require(truncate(path, 1 << 42) == 0)
        try await StubServer.with { server in
            let (starts, continuation) = AsyncStream.makeStream(of: Void.self)
            let manager = manager(
                for: server, configure: { $0.eventMonitors = [ExchangeStarts(continuation: continuation)] })
            let request = try manager.request(.put, "x", body: .file(path))
            let task = Task {
                var request = request
                if end == "its time" { request.timeout = .milliseconds(50) }
                _ = try await manager.data(for: request)
            }
            for await _ in starts { break }
            if end == "its task" { task.cancel() }
            if end == "its session" { await manager.shutdown(draining: .zero) }
            if end == "its time" {
                let error = try await sessionError { try await task.value }
                #expect(error.reason == .timedOut(.request))
                #expect(error.context?.timeLimit == .milliseconds(50))
            } else {
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(server.activity.requests.isEmpty)
        }
    }

    private struct ExchangeStarts: EventMonitor {
        let continuation: AsyncStream<Void>.Continuation

        func receive(_ event: TaskEvent, of task: AnySessionTask) {
            if case .exchange(_, .started) = event { continuation.yield() }
        }
    }

    @Test func `a request is signed when it leaves the queue`() async throws {
        try await StubServer.with { server in
            let gate = try ScriptGate()
            server.route("/held", Script([.wait(gate), .reply(Reply(body: .string("held")))]))
            server.route("/x", .text("x"))
            let manager = manager(for: server, configure: { $0.connectionLimits.maximumConnectionsPerHost = 1 })
            async let held = manager.get("held")
            try await server.requests(count: 1)
            async let queued = manager.get("x")
            try await eventually { await manager.snapshot().hosts.contains { !$0.waiting.isEmpty } }
            let start = Self.time
            // Times have whole seconds.
            try await eventually { Self.time != start }
            gate.open()
            _ = try await (held, queued)
            let times = server.activity.requests.compactMap { $0.headers["x-amz-date"] }
            #expect(times.count == 2)
            #expect(times.last ?? "" > start)
            #expect(server.activity.requests.last?.headers["Authorization"]?.contains("Signature=") == true)
        }
    }

    private static var time: String { Date.now.ISO8601Format().filter { $0 != "-" && $0 != ":" } }

    @Test(arguments: [RequestBody.stream(AsyncStreamOf([Data("hello".utf8)])), .file("/proc/cpuinfo")])
    func `a body that is not known before it is sent cannot be signed without its hash`(body: RequestBody) async throws
    {
        try await StubServer.with { server in
            server.fallback { _ in .text("end") }
            let manager = manager(for: server)
            var request = try manager.request(.put, "x", body: body)
            let error = try await sessionError { _ = try await manager.data(for: request) }
            guard case .invalidRequest(let reason) = error.reason, reason.contains("x-amz-content-sha256") else {
                throw error
            }
            request.headers[try #require(HTTPField.Name("x-amz-content-sha256"))] = "UNSIGNED-PAYLOAD"
            let response = try await manager.data(for: request)
            #expect(response.text == "end")
        }
    }

    @Test func `another host receives no signature, even after a redirect`() async throws {
        try await StubServer.with { server in
            server.fallback { request in
                request.path == "/away" ? .redirect(302, to: "http://b.example/") : .text("end")
            }
            let manager = manager(for: server)
            let response = try await manager.get("away")
            #expect(response.text == "end")
            #expect(server.activity.requests.map { $0.headers["Authorization"] != nil } == [true, false])
            #expect(server.activity.requests.last?.headers["x-amz-content-sha256"] == nil)
        }
    }

    @Test func `requests to a host in another spelling are signed, and an invalid pattern literal is an error`()
        async throws
    {
        let transport = MockTransport(.text("x"))
        func manager(_ hosts: [HostPattern]) -> SessionManager {
            var signature = Self.signature
            signature.hosts = hosts
            return SessionManager(on: transport) { $0.authentication.signatures = [signature] }
        }
        for host in ["b.test.", "B.test", "[0:0::1]", "127.1"] {
            let request = Request(url: try url("http://\(host)/"))
            _ = try await manager(["*.test.", "b.test", "::1", "127.0.0.1"]).data(for: request)
            #expect(transport.requests.last?.request.transportAuthentication?.signature != nil, "\(host)")
        }
        let error = try await sessionError { _ = try await manager(["bücher.test"]).get("x") }
        guard case .invalidRequest(let reason) = error.reason, reason.hasPrefix("The hosts of a signature") else {
            throw error
        }
    }

    @Test func `a refusal is returned as the response`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("no", status: 403) }
            let manager = manager(for: server)
            let response = try await manager.data(for: manager.request(.get, "x"))
            #expect(response.statusCode == 403)
        }
    }
}
