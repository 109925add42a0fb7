// SPDX-License-Identifier: MIT

import ANCurl
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// An HTTP version with or without TLS.
enum Dialect: Sendable {
    case http1, http1OverTLS, http2OverTLS, http2PriorKnowledge, http3

    /// The dialects that libcurl and nginx support.
    static let available: [Dialect] =
        [.http1, .http1OverTLS, .http2OverTLS, .http2PriorKnowledge] + (canTestHTTP3 ? [.http3] : [])
    /// The dialects with reusable connections. libcurl 7.88 fails the second exchange on an HTTP/2 connection with
    /// prior knowledge, as `curl --http2-prior-knowledge URL URL` shows; 8.0 does not (pull request 10643 of curl).
    static let reusing = available.filter { $0 != .http2PriorKnowledge }

    var server: RealServer {
        switch self {
        case .http1: .nginx
        case .http1OverTLS, .http2OverTLS: .nginxTLS
        case .http2PriorKnowledge: .nginxH2C
        case .http3: .nginxHTTP3
        }
    }

    var policy: HTTPVersionPolicy {
        switch self {
        case .http1: .automatic
        case .http2OverTLS: .http2
        case .http1OverTLS: .http1
        case .http2PriorKnowledge: .http2PriorKnowledge
        case .http3: .http3Only
        }
    }

    var version: HTTPVersion {
        switch self {
        case .http1, .http1OverTLS: .http1_1
        case .http2OverTLS, .http2PriorKnowledge: .http2
        case .http3: .http3
        }
    }

    func manager(configure: (inout SessionConfiguration) -> Void = { _ in }) throws -> SessionManager {
        SessionManager(
            try .using(server) {
                $0.httpVersion = policy
                configure(&$0)
            })
    }
}

@Suite(.servers(.nginx, .nginxTLS, .nginxH2C), .timeLimit(.minutes(5))) struct NginxTests {
    private struct Person: Decodable, Equatable {
        var id: Int
        var name: String
    }

    @Test(arguments: Dialect.available)
    func `a value is fetched, and the metrics describe the connection`(dialect: Dialect) async throws {
        let response = try await dialect.manager().get("small.json", as: .decodable(Person.self))
        #expect(response.value == Person(id: 7, name: "Ada Lovelace"))
        #expect(response.head.version == dialect.version)
        #expect(response.metrics.httpVersion == dialect.version)
        let hasTLS = dialect != .http1 && dialect != .http2PriorKnowledge
        // libcurl gives no access to a session of OpenSSL's own QUIC.
        if dialect != .http3 || usesNGTCP2 {
            #expect(response.metrics.tlsVersion == (hasTLS ? "TLSv1.3" : nil))
            #expect((response.metrics.cipher?.hasPrefix("TLS_") == true) == hasTLS)
        }
        #expect((response.metrics.tlsHandshake != nil) == hasTLS)
        #expect(response.metrics.remoteAddress?.port == (try dialect.server.url().port))
        #expect(response.metrics.responseBodyBytes == 59)
    }

    @Test func `the maximum TLS version can be set`() async throws {
        let manager = try SessionManager(for: .nginxTLS) { $0.tls.maximumVersion = .v1_2 }
        let metrics = try await manager.get("small.json").metrics
        #expect(metrics.tlsVersion == "TLSv1.2")
        #expect(metrics.cipher?.contains("GCM") == true || metrics.cipher?.contains("CHACHA20") == true)
    }

    @Test func `50 concurrent requests share few connections over HTTP 2`() async throws {
        let manager = try Dialect.http2OverTLS.manager()
        let metrics = try await withThrowingTaskGroup { group in
            for _ in 0..<50 { group.addTask { try await manager.get("1m.bin").metrics } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(metrics.allSatisfy { $0.httpVersion == .http2 && $0.responseBodyBytes == 1 << 20 })
        let limit = try CurlLibrary.current.get().http2 == .multiplexed ? 2 : 6
        #expect(Set(metrics.map(\.localAddress)).count <= limit)
        #expect(metrics.count { !$0.isConnectionReused } <= limit)
    }

    @Test(arguments: Dialect.reusing)
    func `consecutive requests reuse one connection`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        var metrics: [TransferMetrics] = []
        for _ in 0..<5 { metrics.append(try await manager.get("small.json").metrics) }
        #expect(metrics.map(\.isConnectionReused) == [false, true, true, true, true])
        #expect(Set(metrics.map(\.localAddress)).count == 1)
    }

    @Test func `an HTTP 2 session with prior knowledge performs more than one request`() async throws {
        let manager = try Dialect.http2PriorKnowledge.manager()
        for _ in 0..<3 { #expect(try await manager.get("small.json").metrics.httpVersion == .http2) }
    }

    @Test func `connections do not exceed the maximum per host`() async throws {
        let manager = try SessionManager(for: .nginx) { $0.connectionLimits.maximumConnectionsPerHost = 3 }
        let metrics = try await withThrowingTaskGroup { group in
            for _ in 0..<50 { group.addTask { try await manager.get("1m.bin").metrics } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect((1...3).contains(Set(metrics.map(\.localAddress)).count))
    }

    @Test(arguments: Dialect.reusing)
    func `a byte range is fetched`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        let whole = try await manager.get("1m.bin").value
        let part = try await manager.get("1m.bin", headers: [.range: "bytes=100-199"])
        #expect(part.statusCode == 206)
        #expect(part.headers[.contentRange] == "bytes 100-199/1048576")
        #expect(part.value == whole[100..<200])
        let beyond = try await manager.data(for: manager.request(.get, "1m.bin", headers: [.range: "bytes=2000000-"]))
        #expect(beyond.statusCode == 416)
    }

    @Test(arguments: Dialect.reusing)
    func `an uploaded file is read back unchanged`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        let bytes = patternedBytes(3_000_001)
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/body"
        try bytes.write(to: URL(filePath: file))
        let bodies: [(name: String, body: RequestBody)] = [
            ("bytes", .bytes(bytes)), ("file", .file(file)),
            ("stream", .stream(PatternedChunks(bytes: bytes, chunkSize: 70_001), length: 3_000_001)),
            ("unknown", .stream(PatternedChunks(bytes: bytes, chunkSize: 70_001))),
            (
                "written",
                .writer { writer in
                    for try await chunk in PatternedChunks(bytes: bytes, chunkSize: 70_001) {
                        try await writer.write(chunk)
                    }
                }
            ),
            ("empty", .bytes(Data())),
        ]
        for (name, body) in bodies {
            let path = "upload/\(dialect)-\(name).bin"
            let task = manager.upload(path, body: body, method: .put)
            #expect(try await task.value.statusCode == 201)
            let expected = name == "empty" ? Data() : bytes
            #expect(await task.progress.first { _ in true }?.completedBytes ?? 0 == Int64(expected.count))
            #expect(try await manager.get(path).value == expected)
            #expect(try await manager.delete(path).statusCode == 204)
        }
    }

    @Test(arguments: Dialect.available)
    func `64 MB are downloaded to a file`(dialect: Dialect) async throws {
        let directory = try TemporaryDirectory()
        let task = try dialect.manager().download("64m.bin", to: "\(directory.path)/64m.bin")
        let last = await task.progress.reduce(nil) { $1 }
        #expect(try await task.value.size == 64 << 20)
        #expect(last?.completedBytes == 64 << 20)
        #expect(last?.totalBytes == 64 << 20)
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory.path)/64m.bin")
        #expect(attributes[.size] as? UInt64 == 64 << 20)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["64m.bin"])
    }

    @Test(arguments: Dialect.reusing)
    func `a stream of unknown length is sent, and sent again after a redirect`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        let body = RequestBody.stream(
            PatternedChunks(bytes: patternedBytes(2_000_000), chunkSize: 50_000), isReplayable: true)
        for (path, redirects) in [("sink", 0), ("redirect/307/sink", 1), ("redirect/308/sink", 1)] {
            let response = try await manager.data(for: manager.request(.post, path, body: body))
            #expect(response.text == "{\"received\": true}\n")
            #expect(response.redirectHistory.count == redirects)
            #expect(response.metrics.requestBodyBytes == 2_000_000)
        }
    }

    @Test(arguments: Dialect.reusing)
    func `gzip is decoded, and the Content-Encoding field kept`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        let plain = try await manager.get("text.txt")
        let packed = try await manager.get("gzip/text.txt")
        #expect(plain.headers[.contentEncoding] == nil)
        #expect(packed.headers[.contentEncoding] == "gzip")
        #expect(packed.value == plain.value)
        #expect(packed.metrics.responseBodyBytes < Int64(plain.value.count) / 2)
        let raw = try dialect.manager { $0.decodesContent = false }
        #expect(try await raw.get("gzip/text.txt").headers[.contentEncoding] == nil)
    }

    @Test(arguments: Dialect.available)
    func `repeated header fields are kept separate and in order`(dialect: Dialect) async throws {
        let headers = try await dialect.manager().get("headers").headers
        let name = try #require(HTTPField.Name("X-Repeated"))
        #expect(headers[values: name] == ["one", "two"])
        #expect(headers[values: .setCookie] == ["first=1; Path=/", "second=2; Path=/; HttpOnly"])
    }

    @Test(arguments: Dialect.reusing, [301, 302, 303, 307, 308])
    func `redirects are followed`(dialect: Dialect, status: Int) async throws {
        let response = try await dialect.manager().get("redirect/\(status)", as: .decodable(Person.self))
        #expect(response.value.id == 7)
        #expect(response.redirectHistory.map(\.status.code) == [status])
        #expect(response.head.url.path == "/small.json")
    }

    @Test(arguments: Dialect.reusing)
    func `a redirect loop is an error`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        let error = try await sessionError { _ = try await manager.get("redirect/loop") }
        guard case .redirect(.tooMany(limit: 20, _)) = error else { throw error }
        #expect(try await manager.get("small.json").statusCode == 200)
    }

    @Test(arguments: Dialect.reusing)
    func `any status code is returned`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        for status in [204, 304, 404, 500] {
            let response = try await manager.data(for: manager.request(.get, "status/\(status)"))
            #expect(response.statusCode == status)
            #expect(response.value.isEmpty == (status < 400))
        }
        #expect(try await manager.head("1m.bin").headers[.contentLength] == "1048576")
        #expect(try await sessionError { _ = try await manager.get("none") }.statusCode == 404)
    }

    @Test(arguments: Dialect.reusing)
    func `a body may be abandoned halfway, and the session remains usable`(dialect: Dialect) async throws {
        let manager = try dialect.manager()
        for _ in 0..<3 {
            let count = try await manager.withResponse(for: manager.request(.get, "64m.bin")) { _, body in
                var count = 0
                for try await chunk in body {
                    count += chunk.count
                    if count > 1 << 20 { break }
                }
                return count
            }
            #expect(count > 1 << 20)
        }
        #expect(try await manager.get("small.json").value.count == 59)
    }

    @Test func `shutdown drains open HTTP 2 transfers and ends their connections`() async throws {
        let directory = try TemporaryDirectory()
        let manager = try Dialect.http2OverTLS.manager()
        let downloads = await (0..<4).asyncMap { number in
            manager.download("64m.bin", to: "\(directory.path)/\(number)")
        }
        await manager.shutdown()
        for download in downloads { #expect(try await download.value.size == 64 << 20) }

        let impatient = try Dialect.http2OverTLS.manager()
        let running = impatient.download("1g.bin", to: "\(directory.path)/running")
        _ = await running.progress.first { _ in true }
        await impatient.shutdown(draining: .zero)
        await #expect(throws: CancellationError.self) { _ = try await running.value }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["0", "1", "2", "3"])
    }
}

extension Sequence {
    /// Returns the results of an asynchronous function for each element.
    fileprivate func asyncMap<Result>(_ transform: (Element) async -> Result) async -> [Result] {
        var results: [Result] = []
        for element in self { results.append(await transform(element)) }
        return results
    }
}

@Suite(.servers(.nginxTLS), .timeLimit(.minutes(5))) struct TrustTests {
    private func failure(
        _ url: URL, configure: (inout SessionConfiguration) -> Void
    ) async throws -> TransportError.TLSFailure? {
        let configuration = SessionConfiguration {
            $0.proxy = .none
            configure(&$0)
        }
        let manager = SessionManager(configuration)
        let error = try await sessionError { _ = try await manager.data(for: Request(url: url)) }
        #expect(error.isTrustFailure)
        guard case .tls(let failure) = error.reason else { return nil }
        return failure
    }

    @Test func `an authority that is not in the trust store is rejected`() async throws {
        #expect(try await failure(RealServer.nginxTLS.url("/small.json")) { _ in } == .unknownAuthority)
    }

    @Test func `an authority is trusted by file and by data`() async throws {
        let path = try RealServer.authority()
        let bytes = try Data(contentsOf: URL(filePath: path))
        for roots in [TrustRoots.file(path), .pem(bytes)] {
            let manager = try SessionManager(for: .nginxTLS) { $0.tls.trustRoots = roots }
            #expect(try await manager.get("small.json").statusCode == 200)
        }
    }

    @Test func `a certificate for another host name is rejected`() async throws {
        let port = try #require(try RealServer.nginxTLS.url().port)
        let url = try #require(URL(string: "https://other.example:\(port)/small.json"))
        let authority = try RealServer.authority()
        let failure = try await failure(url) {
            $0.tls.trustRoots = .file(authority)
            $0.connection.hostOverrides = [
                .init(host: "other.example", port: port, address: "127.0.0.1")
            ]
        }
        #expect(failure == .wrongHost)
    }
}
