// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Foundation
import TestSupport

/// Three servers of one file, of which there are several versions, that misbehave at random.
final class Servers: Sendable {
    /// The versions of the file, by their number. All have the same size.
    static let versions = (0..<8).map { version in
        Data(StubServer.generatedBytes(1_000_000 + version).suffix(1_000_000))
    }

    private let servers: [StubServer]
    private let state: Lock<State>

    private struct State {
        var version = 0
        var generator: SeededGenerator
    }

    init(seed: UInt64) throws {
        servers = try (0..<3).map { _ in try StubServer() }
        state = Lock(State(generator: SeededGenerator(seed: seed)))
        for server in servers { server.fallback { [self] in response(to: $0) } }
    }

    /// The URLs of the file, in random order.
    var urls: [URL] {
        state.withLock { state in servers.map { $0.url("/file") }.shuffled(using: &state.generator) }
    }

    /// The number of the current version.
    var version: Int { state.withLock { $0.version } }

    /// Replaces the file by its next version.
    func change() {
        state.withLock { $0.version = ($0.version + 1) % Self.versions.count }
    }

    func stop() async {
        for server in servers { await server.stop() }
    }

    /// The digests of the pieces of a version, by a name such as `pieces:3`; `nil` for another name.
    static func pieceDigests(named name: String) throws -> PieceDigests? {
        let words = name.split(separator: ":")
        guard words.first == "pieces", words.count == 2, let number = Int(words[1]) else { return nil }
        let version = versions[number]
        let values = try stride(from: 0, to: version.count, by: 30_000).map { start in
            try ContentDigest(of: Data(version.dropFirst(start).prefix(30_000))).value
        }
        return try PieceDigests(.sha256, pieceLength: 30_000, totalBytes: Int64(version.count), values: values)
    }

    static func entityTag(_ version: Int) -> String { "\"\(version)\"" }

    private func response(to request: RecordedRequest) -> Script {
        state.withLock { state in
            var file = ServedFile(
                Self.versions[state.version], entityTag: Self.entityTag(state.version),
                pace: Script.Pace(bytes: 4_000, every: .milliseconds(1)))
            let place = Int.random(in: 0..<200_000, using: &state.generator)
            switch Int.random(in: 0..<20, using: &state.generator) {
            case 0, 1, 2: file.interruption = .close(after: place)
            case 3: file.interruption = .hang(after: place)
            case 4: file.hasRanges = false
            case 5: return .status(503)
            default: break
            }
            return file.script(for: request)
        }
    }
}
