// SPDX-License-Identifier: MIT

// Kills processes that download one file in segments, at random moments, and checks what each has left behind:
//
//     DownloadKills KILLS [SEED]
//     DownloadKills --download URL PATH MICROSECONDS [DIGEST MIRROR…]    a process that is killed; instead of a digest,
//                                                                        pieces:VERSION for those of pieces

import AsyncNetworking
import AsyncNetworkingTesting
import Foundation
import Glibc
import TestSupport

let words = Array(CommandLine.arguments.dropFirst())
if words.first == "--download", words.count >= 4, let url = URL(string: words[1]), let delay = UInt32(words[3]) {
    try await download(
        url, to: words[2], killedAfter: delay,
        options: options(words.dropFirst(4).first, words.dropFirst(5).compactMap { URL(string: $0) }))
} else if let kills = words.first.flatMap({ Int($0) }) {
    let seed = words.dropFirst().first.flatMap { UInt64($0) } ?? .random(in: 0...9_999)
    let tally = try await Killer(seed: seed).run(kills)
    print(
        "seed \(seed): \(tally.kills) kills, \(tally.resumed) of processes that resumed; \(tally.records) records with "
            + "\(tally.ranges) ranges and \(tally.files) files compared, \(tally.wrong.count) wrong")
    for problem in tally.wrong.prefix(20) { print("  \(problem)") }
    exit(tally.wrong.isEmpty && tally.resumed > 0 && tally.files > 0 ? 0 : 1)
} else {
    print("usage: DownloadKills KILLS [SEED]")
    exit(2)
}

/// Downloads a file in eight segments. The process is killed after a time, or a long time after the download.
func download(
    _ url: URL, to path: String, killedAfter microseconds: UInt32, options: DownloadOptions
) async throws {
    Thread.detachNewThread {
        usleep(microseconds)
        kill(getpid(), SIGKILL)
    }
    let manager = SessionManager {
        $0.proxy = .none
        $0.connectionLimits.maximumConnectionsPerHost = 8
    }
    _ = try? await manager.download(Request(url: url), to: .file(path), options: options).value
    try await Task.sleep(for: .seconds(60))
}

/// The options of all downloads. The file is flushed often, so that there are many records.
func options(_ digests: String? = nil, _ mirrors: [URL] = []) throws -> DownloadOptions {
    let pieces = try digests.flatMap { try Servers.pieceDigests(named: $0) }
    return DownloadOptions.durable.with {
        $0.segments = 8
        $0.expectedDigest = digests.flatMap { ContentDigest($0) }
        $0.pieceDigests = pieces
        $0.mirrors = mirrors
        $0.segmentTuning.minimum = 20_000
        $0.flushInterval = 50_000
    }
}
