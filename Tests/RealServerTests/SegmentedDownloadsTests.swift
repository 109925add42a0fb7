// SPDX-License-Identifier: MIT

import ANCurl
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import Synchronization
import Testing

/// Segments over HTTP/2: streams of one connection, or a connection for each if libcurl does not share them.
@Suite(.servers(.nginxTLS), .timeLimit(.minutes(5))) struct SegmentedDownloadsTests {
    private static let segments = 4
    private let directory: TemporaryDirectory
    private let content: Data
    private let options: DownloadOptions

    init() throws {
        directory = try TemporaryDirectory()
        content = try Data(contentsOf: URL(filePath: try RealServer.directory() + "/www/64m.bin"))
        let digest = try ContentDigest(of: content)
        options = DownloadOptions().with {
            $0.segments = .count(Self.segments)
            $0.expectedDigest = digest
        }
    }

    /// Counts the responses with parts of the file, by host and version.
    private final class PartCounter: Interceptor {
        private let counts = Mutex<[String: Int]>([:])

        var parts: [String: Int] { counts.withLock { $0 } }

        func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
            let response = try await next(request)
            if response.head.status == .partialContent {
                let key = "\(request.url.host() ?? "") \(response.head.version.rawValue)"
                counts.withLock { $0[key, default: 0] += 1 }
            }
            return response
        }
    }

    /// The connections of a session to each origin with exchanges, and the exchanges on each.
    private func busy(_ manager: SessionManager) async -> [String: [Int]] {
        let hosts = await manager.snapshot().hosts.map { host in
            (host.origin, host.connections.filter { !$0.exchanges.isEmpty }.map(\.exchanges.count))
        }
        return Dictionary(uniqueKeysWithValues: hosts)
    }

    @Test func `segments are streams of one connection, or have a connection each`() async throws {
        let parts = PartCounter()
        let manager = try Dialect.http2OverTLS.manager { $0.interceptors = [parts] }
        let path = "\(directory.path)/file"
        let task = manager.download("limited/64m.bin", to: .file(path), options: options)
        var observed: Set<[Int]> = []
        for await _ in task.progress { observed.formUnion(await busy(manager).values) }
        _ = try await task.value
        #expect(try Data(contentsOf: URL(filePath: path)) == content)
        #expect(parts.parts.keys.sorted() == ["localhost HTTP/2"])
        #expect((parts.parts.values.first ?? 0) >= Self.segments - 1)
        let isShared = try CurlLibrary.current.get().http2 == .multiplexed
        #expect(observed.contains(isShared ? [Self.segments] : Array(repeating: 1, count: Self.segments)))
        #expect(observed.allSatisfy { isShared ? $0.count <= 1 : $0.allSatisfy { $0 == 1 } }, "\(observed)")
    }

    @Test func `segments come from a mirror over HTTP 2`() async throws {
        let parts = PartCounter()
        let manager = try Dialect.http2OverTLS.manager { $0.interceptors = [parts] }
        let path = "\(directory.path)/file"
        let port = try #require(RealServer.nginxTLS.url().port)
        let mirror = try #require(URL(string: "https://127.0.0.1:\(port)/limited/64m.bin"))
        _ = try await manager.download(
            "limited/64m.bin", to: .file(path), options: options.with { $0.mirrors = [mirror] }
        ).value
        #expect(try Data(contentsOf: URL(filePath: path)) == content)
        #expect(parts.parts.keys.sorted() == ["127.0.0.1 HTTP/2", "localhost HTTP/2"])
    }
}
