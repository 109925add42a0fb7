// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc
import HTTPTypes
import Testing

@Suite struct SessionErrorTests {
    private static let context: FailureContext = {
        var context = FailureContext()
        context.host = "a.example"
        context.elapsed = .seconds(2)
        return context
    }()

    private static let errors: [String: SessionError] = [
        "timeout": .transport(TransportError(.timedOut(.connect))),
        "name": .transport(TransportError(.cannotResolve, context: context)),
        "refused": .transport(TransportError(.cannotConnect(.refused))),
        "proxy": .transport(TransportError(.proxy(.authenticationRequired))),
        "tls": .transport(TransportError(.tls(.wrongHost))),
        "shut down": .transport(TransportError(.shutDown)),
        "redirect": .redirect(.bodyNotReplayable),
        "invalidated": .invalidated,
        "file": .file(.init(path: "/a/b", call: "open", errno: 2, message: "No such file or directory")),
    ]

    private func names(where holds: (SessionError) -> Bool) -> [String] {
        Self.errors.filter { holds($0.value) }.keys.sorted()
    }

    @Test func `properties classify errors`() {
        #expect(names(where: \.isTimeout) == ["timeout"])
        #expect(names(where: \.isConnectionFailure) == ["name", "proxy", "refused"])
        #expect(names(where: \.isTrustFailure) == ["tls"])
        #expect(names { $0.statusCode != nil || $0.responseBody != nil || $0.rejection != nil } == [])
    }

    @Test func `the reason and the context are those of the exchange`() throws {
        let error = try #require(Self.errors["name"])
        #expect(error.reason == .cannotResolve)
        #expect(error.context?.elapsed == .seconds(2))
        #expect(error.transport?.context == error.context)
        #expect(names { $0.reason == .timedOut(.connect) } == ["timeout"])
        #expect(names { $0.transport == nil } == ["file", "invalidated", "redirect"])
    }

    @Test func `an error without an exchange has neither reason nor context`() throws {
        let error = SessionError.serialization(.url(.noHost("http://")))
        #expect(error.reason == nil && error.context == nil)
        guard case .url(.noHost("http://")) = error.serialization else { throw error }
    }

    /// Text of a server that would clear a terminal, ring its bell, and reverse the rest of the line.
    private static let hostile = "a\u{1B}[2J\u{7}\u{9B}2J\u{202E}\u{2066}\r\n\u{2028}z"

    /// Values with a description that contains text of a server.
    private static func described() throws -> [any CustomStringConvertible] {
        var context = FailureContext()
        (context.message, context.url) = (hostile, hostile)
        let location = try #require(URL(string: "http://a.example/"))
        let head = ResponseHead(
            status: .init(code: 500, reasonPhrase: "a"), headers: [.contentType: "a/\u{9B}\u{202E}"], url: location)
        let reasons: [TransportError.Reason] = [
            .invalidURL(hostile), .unsupportedScheme(hostile), .cannotResolve, .tls(.badStaple(hostile)),
            .tls(.rejected(hostile)), .invalidContentEncoding, .internalInconsistency(hostile),
            .webSocketClosed(WebSocketClosure(code: 4000, reason: hostile)), .connectionLost(.inHead),
            .invalidResponse(.headerLine(hostile)),
        ]
        let rejection = try #require(ResponseValidation.json.rejection(of: head, Data(hostile.utf8)))
        let documents: [SerializationError] = [
            .url(.noHost(hostile)), .rejected(rejection), .text(.unknownCharset(hostile)),
            .text(.invalidBytes(charset: hostile)), .parts(.notMultipart(contentType: hostile)),
            .parts(.responseBoundary(hostile)), .parts(.partHeader(hostile)), .emptyBody(status: 200, wanted: hostile),
        ]
        let failures: [TransportError.ResponseFailure] = [
            .statusLine(hostile), .headerLine(hostile), .webSocket(hostile),
        ]
        let errors: [SessionError] =
            reasons.map { .transport(TransportError($0, context: context)) } + documents.map { .serialization($0) } + [
                .notResumable(.wrongRange(hostile)), .redirect(.location(hostile)), .invalidCookie(name: hostile),
                .redirect(.tooMany(limit: 1, to: hostile)),
            ]
        let space = ProtectionSpace(
            host: "a.example", port: 80, isSecure: false, scheme: .basic, realm: hostile)
        let values: [[any CustomStringConvertible]] = [
            errors, failures.map { TransportError(.invalidResponse($0)) },
            [rejection, TaskEvent.ended(.failed(errors[0]), CallMetrics()), space],
        ]
        return values.flatMap(\.self)
    }

    @Test func `no description contains text of a server that controls a terminal`() throws {
        for value in try Self.described() {
            let text = "\(value)"
            let controls = text.unicodeScalars.filter { scalar in
                [.control, .format, .lineSeparator].contains(scalar.properties.generalCategory)
            }
            #expect(controls.isEmpty, "\(type(of: value)): \(text)")
            #expect((value as? any LocalizedError)?.errorDescription ?? text == text)
        }
    }

    @Test func `descriptions are sentences`() {
        #expect(
            Self.errors["invalidated"]?.description == "The session manager was invalidated; create a new one.")
        #expect(
            Self.errors["file"]?.description
                == "/a/b: No such file or directory (open); create the directory, or for a "
                + "download set createsIntermediateDirectories of its destination")
        let lock = SessionError.FileFailure(path: "/a/b", call: "flock", errno: EWOULDBLOCK, message: "It is locked")
        #expect(
            lock.description == "/a/b: It is locked (flock); another download, possibly in another process, is writing "
                + "this file")
        #expect(
            SessionError.redirect(.tooMany(limit: 20, to: "http://a.example/")).description
                == "The server redirected more than 20 times, the last time to http://a.example/; it may be a loop.")
        #expect(
            Self.errors["redirect"]?.description
                == "The server redirected a request whose body cannot be sent a second time.")
        #expect(
            Self.errors["name"]?.description
                == "The host name a.example cannot be resolved; check its spelling and the DNS.")
    }

    @Test(arguments: [
        ("ftp://user:secret@a.example/x?token=secret#secret", "ftp://a.example/x?token=…"),
        ("mailto:secret@a.example", "mailto:…"),
        ("http://[secret", "…"),
    ])
    func `a Location in a description contains no secrets`(location: String, expected: String) {
        #expect(
            SessionError.redirect(.location(location)).description
                == "The server redirected to “\(expected)”, which is not an http or https URL.")
    }

    @Test func `no description of a failed request contains user information or query values`() async throws {
        let secret = "http://user:secret@a.example/x?token=secret"
        let transports = [
            MockTransport(.status(.notFound)),
            MockTransport(.redirect(.found, to: "ftp://user:secret@a.example/?token=secret")),
            MockTransport { _ in .redirect(.found, to: secret) },
        ]
        for transport in transports {
            let error = try await sessionError { _ = try await SessionManager(on: transport).get(secret) }
            #expect(!error.description.contains("secret"))
            #expect(!"\(error)".contains("secret"))
        }
        let downgraded = SessionManager(on: MockTransport(.redirect(.found, to: secret)), baseURL: "https://a.example")
        let error = try await sessionError { _ = try await downgraded.get("x") }
        #expect(!error.description.contains("secret"))
    }

    @Test func `a task's description contains no secrets`() async throws {
        let transport = MockTransport(.hang)
        let manager = SessionManager(on: transport)
        let task = Task { try await manager.get("http://user:secret@a.example/x?token=secret") }
        try await transport.requests(count: 1)
        let description = "\(manager.tasks)"
        #expect(description.contains("a.example/x?token=…"))
        #expect(!description.contains("secret"))
        task.cancel()
        _ = await task.result
    }

    @Test func `an https URL whose port does not speak TLS is named as the reason`() async throws {
        try await StubServer.with { server in
            server.fallback { _ in .text("x") }
            let url = try url("https://127.0.0.1:\(try #require(server.url("/").port))/")
            let error = try await sessionError {
                _ = try await SessionManager(for: server).data(for: Request(url: url))
            }
            #expect(error.reason == .tls(.handshake))
            #expect(error.description.contains("the port does not speak TLS; check the port, or use http"))
        }
    }

    @Test func `a rejected response that was not retried contains the reason and the number of attempts`() async throws
    {
        for (method, reason) in [
            (HTTPRequest.Method.get, "attempt 2, not retried because there was 1 retry"),
            (.post, "attempt 1, not retried because the server may have processed it and its method is not idempotent"),
        ] {
            let manager = SessionManager(on: MockTransport(.status(.serviceUnavailable))) {
                $0.retryPolicy = RetryPolicy(limit: 1).with { $0.backoff = Backoff(base: .zero) }
            }
            let request = try manager.request(method, "x")
            let error = try await sessionError { _ = try await manager.value(for: request, as: .data) }
            #expect(error.description.contains(reason))
        }
    }
}
