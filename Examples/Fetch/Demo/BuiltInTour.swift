// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

/// The demo against a TLS server in this process, with a certificate from a temporary authority.
struct BuiltInTour {
    let api: SessionManager
    let server: StubServer
    let directory: TemporaryDirectory
    private let progress = DemoProgress()

    /// Runs all steps with temporary servers.
    static func run(_ report: inout DemoReport, directory: TemporaryDirectory) async throws {
        let authority = try TestCertificateAuthority()
        // `StubServer.with` would copy the report into its closure. The server ends with this scope.
        let server = try StubServer(.init(tls: .init(authority.issue())))
        addRoutes(to: server)
        report.say("A tour of AsyncNetworking \(SessionManager.libraryVersion), with a server in this process:")
        report.say(server.url().absoluteString)
        do {
            try await withSession(baseURL: server.url(), configure: { $0.tls.trustRoots = .pem(authority.pemData) }) {
                let tour = BuiltInTour(api: $0, server: server, directory: directory)
                try await tour.run(&report)
            }
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private init(api: SessionManager, server: StubServer, directory: TemporaryDirectory) {
        self.api = api
        self.server = server
        self.directory = directory
    }

    private static let uploadSize: Int64 = 50_000_000
    private static let downloadSize: Int64 = 200_000_000

    private static func addRoutes(to server: StubServer) {
        server.route("/users/7", .json(#"{"id": 7, "name": "Ada Lovelace", "languages": ["English", "French"]}"#))
        server.route("/echo", .echo)
        server.route("/disk.img", method: "PUT", .status(201))
        server.route("/disk.img", method: "GET", .generated(downloadSize))
        server.route("/slow.img", .drip(bytes: 1_000_000, every: .milliseconds(50), body: .generated(downloadSize)))
        server.route(
            "/page",
            Script([
                .informational(103, headers: ["Link": "</style.css>; rel=preload"]), .delay(.milliseconds(50)),
                .reply(Reply(body: .string("<h1>Hello</h1>"))),
            ]))
        server.route(
            "/events",
            .drip(bytes: 8, every: .milliseconds(30), body: .string("event 1\nevent 2\nevent 3\n"), framing: .chunked))
        server.route("/never", .hang)
    }

    private func run(_ report: inout DemoReport) async throws {
        try await report.step(
            "JSON from the server is decoded as a Swift value",
            #"let user = try await api.get("users/7", as: .decodable(User.self)).value"#, getJSON)
        try await report.step(
            "A form is sent with POST; the server returns what it received",
            #"try await api.post("echo", parameters: ["name": "Ada", "tags": ["math", "code"]], as: …)"#, postForm)
        try await report.step(
            "A file of \(Quantity.bytes(Self.uploadSize)) is uploaded, with progress",
            """
            let upload = api.upload("disk.img", body: .file(path), method: .put)
            for await progress in upload.progress { … }
            """, uploadFile)
        try await report.step(
            "A file of \(Quantity.bytes(Self.downloadSize)) is downloaded, with progress",
            """
            let download = api.download("disk.img", to: .file(path))
            for await progress in download.progress { … }
            """, downloadFile)
        try await report.step(
            "A download is cancelled: it ends at once and leaves no file",
            "download.cancel()", cancelDownload)
        try await report.step(
            "A server with a self-signed certificate is rejected",
            #"try await SessionManager().get("https://…")"#, refuseCertificate)
        try await report.step(
            "An interim response, 103 Early Hints, is received before the final one",
            "try await api.withResponse(for: request, reporting: events) { head, body in … }", hearEarlyHints)
        try await report.step(
            "Lines are read as they arrive",
            "for try await line in body.lines { … }", readLines)
        try await report.step(
            "200 concurrent requests share 6 connections",
            "configuration.connectionLimits.maximumConnectionsPerHost = 6", shareConnections)
        try await report.step(
            "A request to a server that does not respond times out",
            "request.timeout = .milliseconds(300)", timeOut)
    }

    private func getJSON() async throws -> [String] {
        let response = try await api.get("users/7", as: .decodable(User.self))
        try expect(
            response.value == User(id: 7, name: "Ada Lovelace", languages: ["English", "French"]),
            "The value differs: \(response.value)")
        return ["\(response.value)", "Status \(response.statusCode), \(response.metrics.tlsVersion ?? "no TLS")"]
    }

    private func postForm() async throws -> [String] {
        let echo = try await api.post(
            "echo", parameters: ["name": "Ada", "tags": ["math", "code"]], as: .decodable(RequestEcho.self)
        ).value
        let type = echo.headers.first { $0.first == "Content-Type" }?.last ?? ""
        try expect(echo.body == "name=Ada&tags%5B%5D=math&tags%5B%5D=code", "The server received \(echo.body ?? "")")
        return ["The server received \(echo.method) \(echo.target)", "\(type): \(echo.body ?? "")"]
    }

    private func uploadFile() async throws -> [String] {
        let path = try directory.write("upload.img", StubServer.generatedBytes(Int(Self.uploadSize)))
        let upload = api.upload("disk.img", body: .file(path), method: .put)
        await progress.follow(upload.progress, label: "upload")
        let response = try await upload.value
        let received = server.activity.requests.last { $0.method == "PUT" }?.bodyLength
        try expect(response.statusCode == 201, "The status is \(response.statusCode).")
        try expect(received == Self.uploadSize, "The server received \(received ?? 0) bytes.")
        return ["Status \(response.statusCode); the server counted \(Self.uploadSize) bytes"]
    }

    private func downloadFile() async throws -> [String] {
        let path = directory.path("download.img")
        let download = api.download("disk.img", to: .file(path))
        await progress.follow(download.progress, label: "download")
        let file = try await download.value
        try expect(file.size == Self.downloadSize, "The file has \(file.size) bytes.")
        return ["Status 200; the file has \(file.size) bytes"]
    }

    private func cancelDownload() async throws -> [String] {
        let before = try directory.names()
        let download = api.download("slow.img", to: .file(directory.path("cancelled.img")))
        var received: Int64 = 0
        for await progress in download.progress where progress.completedBytes > 2_000_000 {
            received = progress.completedBytes
            break
        }
        download.cancel()
        let start = ContinuousClock.now
        do {
            _ = try await download.value
            throw DemoError("The download was not cancelled.")
        } catch is CancellationError {
            let time = ContinuousClock.now - start
            try expect(directory.names() == before, "A file was left behind.")
            try await server.activity { $0.requests.contains { $0.path == "/slow.img" && $0.isAbandoned } }
            return [
                "CancellationError \(Quantity.time(time)) later, after \(Quantity.bytes(received)); no file is left"
            ]
        }
    }

    private func refuseCertificate() async throws -> [String] {
        let server = try StubServer(.init(tls: .init(.selfSigned())))
        do {
            _ = try await SessionManager().get(server.url().absoluteString)
        } catch let error as SessionError where error.isTrustFailure {
            await server.stop()
            try expect(server.activity.requests.isEmpty, "The request was sent.")
            return ["\(error)", "The server received no request"]
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
        throw DemoError("The certificate was accepted.")
    }

    private func hearEarlyHints() async throws -> [String] {
        let events = EventRecorder()
        let request = try api.request(.get, "page")
        let status = try await api.withResponse(for: request, reporting: events) { head, _ in head.status.code }
        let hints = events.informationalHeads
        try expect(hints.map(\.status.code) == [103] && status == 200, "The statuses are \(hints) and \(status).")
        let link = hints.first?.headers.first { $0.name.canonicalName == "link" }?.value ?? ""
        return ["103 with Link: \(link)", "then \(status)"]
    }

    private func readLines() async throws -> [String] {
        let request = try api.request(.get, "events")
        return try await api.withResponse(for: request) { _, body in
            var lines: [String] = []
            let start = ContinuousClock.now
            for try await line in body.lines {
                lines.append("\(line)  after \(Quantity.time(ContinuousClock.now - start))")
            }
            try expect(lines.count == 3, "There are \(lines.count) lines.")
            return lines
        }
    }

    private func shareConnections() async throws -> [String] {
        let before = server.activity
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...200 {
                group.addTask { try await api.get("users/7", parameters: ["number": "\(number)"]).statusCode }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let after = server.activity
        let requests = after.requests.count - before.requests.count
        let connections = after.openConnections
        try expect(statuses.allSatisfy { $0 == 200 } && requests == 200, "\(requests) requests arrived.")
        try expect(connections <= 6, "There are \(connections) connections.")
        return ["200 responses over \(connections) connections"]
    }

    private func timeOut() async throws -> [String] {
        var request = try api.request(.get, "never")
        request.timeout = .milliseconds(300)
        do {
            _ = try await api.data(for: request)
        } catch let error as SessionError where error.isTimeout {
            return ["\(error)"]
        }
        throw DemoError("The request did not time out.")
    }
}
