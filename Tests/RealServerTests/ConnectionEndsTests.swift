// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Testing

/// The servers that forward requests to an origin, which records the requests that it processes.
enum FrontServer: CaseIterable, Sendable {
    case apache, haproxy, caddy, nginx

    /// The address at which the server is tried with an HTTP version: without TLS for HTTP/1.1.
    func address(for version: HTTPVersion) -> RealServer {
        switch (self, version) {
        case (.apache, .http2): .apacheTLS
        case (.apache, _): .apache
        case (.haproxy, .http2): .haproxyTLS
        case (.haproxy, _): .haproxy
        case (.caddy, .http2): .caddyTLS
        case (.caddy, _): .caddy
        case (.nginx, .http2): .nginxFrontTLS
        case (.nginx, _): .nginxFront
        }
    }

    /// The address at which connections are closed after a second without requests.
    var idle: RealServer {
        switch self {
        case .apache: .apacheIdle
        case .haproxy: .haproxyIdle
        case .caddy: .caddyIdle
        case .nginx: .nginxFrontIdle
        }
    }
}

/// Connections that servers end, and responses that precede the end of the request body.
@Suite(.servers(.apache, .haproxy, .caddy, .nginxFront), .timeLimit(.minutes(5))) struct ConnectionEndsTests {
    private static let versions = [HTTPVersion.http1_1, .http2]

    @Test(arguments: FrontServer.allCases, versions)
    func `a final response to an unfinished request body is delivered`(
        server: FrontServer, version: HTTPVersion
    ) async throws {
        let manager = try manager(server.address(for: version), version)
        for status in [401, 403, 413] {
            for size in [64 << 10, 1 << 20] {
                let bytes = Data(repeating: 0x61, count: size)
                let bodies = [
                    .bytes(bytes), RequestBody.stream(PatternedChunks(bytes: bytes, chunkSize: 16 << 10), length: nil),
                ]
                for (index, body) in bodies.enumerated() {
                    let outcomes = await Outcomes(of: 4, inFlight: 2) { _ in
                        let request = try manager.request(.post, "refuse/\(status)", body: body)
                        return try await manager.data(for: request).statusCode.description
                    }
                    #expect(
                        outcomes.counts == ["\(status)": 4], "\(size) bytes, \(["known", "unknown"][index]) length")
                }
            }
        }
    }

    @Test(arguments: FrontServer.allCases, versions)
    func `a redirect of an unfinished request body is followed`(
        server: FrontServer, version: HTTPVersion
    ) async throws {
        let manager = try manager(server.address(for: version), version)
        let log = try OriginLog()
        for status in [307, 308] {
            for size in [64 << 10, 1 << 20] {
                let prefix = log.makePrefix()
                // HAProxy 2.6 never returns the flow-control window of refused bodies to an HTTP/2 connection, on which
                // a concurrent body then waits in vain.
                let outcomes = await Outcomes(of: 4, inFlight: server == .haproxy ? 1 : 2) { number in
                    let request = try manager.request(
                        .put, "redirect/\(status)", body: .bytes(Data(repeating: 0x61, count: size)),
                        headers: [log.name: "\(prefix)\(number)"])
                    let response = try await manager.data(for: request)
                    return "\(response.redirectHistory.map(\.status.code)) \(response.statusCode) \(response.text)"
                }
                #expect(outcomes.counts == ["[\(status)] 200 {\"received\": \(size)}": 4])
                #expect(try log.counts(prefix) == [1, 1, 1, 1])
            }
        }
    }

    @Test(
        arguments: [
            (RealServer.apacheLimit, HTTPVersion.http1_1), (.nginxFrontLimit, .http1_1), (.nginxFrontLimit, .http2),
        ], [HTTPRequest.Method.get, .post])
    func `requests succeed while a server closes connections after 10 requests`(
        place: (server: RealServer, version: HTTPVersion), method: HTTPRequest.Method
    ) async throws {
        let manager = try manager(place.server, place.version)
        let log = try OriginLog()
        let prefix = log.makePrefix()
        let outcomes = await Outcomes(of: 200, inFlight: 32) { number in
            let request = try manager.request(
                method, "sink", body: method == .post ? .string("body") : .none,
                headers: [log.name: "\(prefix)\(number)"])
            let response = try await manager.data(for: request)
            #expect(response.head.version == place.version)
            return response.text
        }
        #expect(outcomes.counts == ["{\"received\": \(method == .post ? 4 : 0)}": 200])
        #expect(try log.counts(prefix) == Array(repeating: 1, count: 200))
    }

    @Test(arguments: FrontServer.allCases, versions)
    func `a request at the moment when the server closes the idle connection succeeds or is a lost connection`(
        server: FrontServer, version: HTTPVersion
    ) async throws {
        let log = try OriginLog()
        let methods = [HTTPRequest.Method.get, .put, .post, .patch]
        let prefixes = methods.map { _ in log.makePrefix() }
        let managers = try (0..<16).map { _ in try manager(server.idle, version) }
        let outcomes = await Outcomes(of: 64, inFlight: 16) { number in
            let (round, worker) = number.quotientAndRemainder(dividingBy: managers.count)
            if round == 0 {
                // Spread the load: a delayed request is sent after the connection was closed.
                try await Task.sleep(for: .milliseconds(50 * worker), tolerance: .zero)
                _ = try await managers[worker].get("small.json")
            }
            try await Task.sleep(for: .milliseconds(Int.random(in: 990...1000)), tolerance: .zero)
            let request = try managers[worker].request(
                methods[round], "sink", body: round == 0 ? .none : .string("body"),
                headers: [log.name: "\(prefixes[round])\(worker)"])
            do {
                return "\(methods[round]) \(try await managers[worker].data(for: request).statusCode)"
            } catch let error as SessionError where version != .http2 && round >= 2 {
                guard case .connectionLost(let loss) = error.reason else { throw error }
                // The server may have processed the request, and its method is not idempotent.
                #expect(loss == .beforeResponse || loss == .whileSending)
                return "\(methods[round]) 200"
            }
        }
        #expect(outcomes.counts == ["GET 200": 16, "PUT 200": 16, "POST 200": 16, "PATCH 200": 16])
        for prefix in prefixes[2...] { #expect(try log.counts(prefix).allSatisfy { $0 == 1 }) }
    }

    @Test(arguments: FrontServer.allCases, [401, 403, 413])
    func `a connection whose server has refused an expectation carries no other request`(
        server: FrontServer, status: Int
    ) async throws {
        let manager = try manager(server.address(for: .http1_1), .http1_1)
        var request = try manager.request(.post, "refuse/\(status)", body: .bytes(Data(repeating: 0x61, count: 2000)))
        request.changeOptions { $0.expectContinueTimeout = .seconds(10) }
        let refusal = try await manager.data(for: request)
        #expect(refusal.statusCode == status)
        #expect(refusal.metrics.requestBodyBytes == 0)
        let next = try await manager.get("small.json")
        #expect(next.value.count == 59)
        // nginx would take the request for the body, and close the connection after a while.
        #expect(next.metrics.sendCount == 1)
        #expect(next.metrics.localAddress != refusal.metrics.localAddress)
    }

    @Test(arguments: [FrontServer.haproxy, .nginx], [401, 403, 413])
    func `a connection whose server has responded to an open request body carries no other request`(
        server: FrontServer, status: Int
    ) async throws {
        let manager = try manager(server.address(for: .http1_1), .http1_1)
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        continuation.yield(Data(repeating: 0x61, count: 2000))
        defer { continuation.finish() }
        let request = try manager.request(.put, "refuse/\(status)", body: .stream(chunks, length: 4000))
        let refusal = try await manager.data(for: request)
        #expect(refusal.statusCode == status)
        let next = try await manager.get("small.json")
        #expect(next.value.count == 59)
        #expect(next.metrics.sendCount == 1)
        #expect(next.metrics.localAddress != refusal.metrics.localAddress)
    }

    private func manager(_ server: RealServer, _ version: HTTPVersion) throws -> SessionManager {
        try SessionManager(for: server) {
            $0.timeouts.total = .seconds(15)
            $0.httpVersion = version == .http1_1 ? .http1 : .http2
        }
    }
}

/// The number of requests per outcome: a description of the response or of the error.
private struct Outcomes {
    private(set) var counts: [String: Int] = [:]

    /// Performs requests numbered from zero.
    init(
        of count: Int, inFlight: Int, perform: @escaping @Sendable (_ number: Int) async throws -> String
    ) async {
        counts = await withTaskGroup { group in
            for worker in 0..<inFlight {
                group.addTask {
                    var counts: [String: Int] = [:]
                    for number in stride(from: worker, to: count, by: inFlight) {
                        let outcome: String
                        do { outcome = try await perform(number) } catch { outcome = "\(error)" }
                        counts[outcome, default: 0] += 1
                    }
                    return counts
                }
            }
            return await group.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
        }
    }
}

/// The origin's record of the requests that it processed, by their `X-Request-ID`.
private struct OriginLog {
    /// The name of the header field.
    let name: HTTPField.Name
    private let path: String

    init() throws {
        name = try #require(HTTPField.Name("X-Request-ID"))
        path = try RealServer.directory() + "/ids"
    }

    /// Returns a unique prefix for request identifiers.
    func makePrefix() -> String {
        "ends\(UInt64.random(in: 0...UInt64.max))-"
    }

    /// Returns how often each request whose identifier has a prefix was processed; requests that were not are left out.
    func counts(_ prefix: String) throws -> [Int] {
        let text = try String(contentsOf: URL(filePath: path), encoding: .utf8)
        let identifiers = text.split(separator: "\n").filter { $0.hasPrefix(prefix) }
        return Dictionary(grouping: identifiers) { $0 }.map(\.value.count)
    }
}
