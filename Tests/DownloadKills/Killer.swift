// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import Foundation
import Glibc
import TestSupport

/// Starts processes that are killed, one after the other on each of two files, and checks the files.
final class Killer: Sendable {
    private let seed: UInt64
    private let servers: Servers
    private let digests: [ContentDigest]
    private let directory: String
    private let tally = Lock(Tally())

    /// What was checked.
    struct Tally {
        var kills = 0
        /// The number of processes that found a record.
        var resumed = 0
        var records = 0
        var ranges = 0
        /// The number of whole files.
        var files = 0
        /// Descriptions of wrong records and files.
        var wrong: [String] = []
    }

    init(seed: UInt64) throws {
        self.seed = seed
        servers = try Servers(seed: seed)
        digests = try Servers.versions.map { version in
            let digest = MessageDigest(.sha256)
            digest.update(version.bytes)
            guard let value = digest.value else { throw SystemError(call: "EVP_DigestFinal", code: 0) }
            return ContentDigest(.sha256, Data(value))
        }
        directory = "\(FileManager.default.temporaryDirectory.path)/an-kills-\(getpid())"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    /// Kills a number of processes, then lets a last one end each download.
    func run(_ kills: Int) async throws -> Tally {
        try await withThrowingTaskGroup { group in
            for lane in 0..<2 {
                group.addTask { [self] in
                    var generator = SeededGenerator(seed: seed &+ UInt64(lane))
                    while start(upTo: kills) { try await kill("\(directory)/file\(lane)", using: &generator) }
                    try await finish("\(directory)/file\(lane)")
                }
            }
            try await group.waitForAll()
        }
        await servers.stop()
        try FileManager.default.removeItem(atPath: directory)
        return tally.withLock { $0 }
    }

    private func start(upTo kills: Int) -> Bool {
        tally.withLock { tally in
            guard tally.kills < kills else { return false }
            tally.kills += 1
            return true
        }
    }

    private func kill(_ path: String, using generator: inout SeededGenerator) async throws {
        let urls = servers.urls
        let delay = Int.random(in: 0..<300_000, using: &generator)
        var words = ["/proc/self/exe", "--download", urls[0].absoluteString, path, "\(delay)"]
        // With mirrors, the digests of the version of this moment are expected, which may change meanwhile.
        let kind = Int.random(in: 0..<3, using: &generator)
        if kind < 2 {
            let version = servers.version
            words += [kind == 0 ? digests[version].description : "pieces:\(version)"]
            words += urls.dropFirst().map(\.absoluteString)
        }
        if ResumeData.left(at: path) != nil { tally.withLock { $0.resumed += 1 } }
        async let outcome = Command(words).run()
        if Int.random(in: 0..<20, using: &generator) == 0 { servers.change() }
        let status = try await outcome.status
        let place = "\(path) after \(delay) µs"
        if status != 128 + SIGKILL { note("\(place): status \(status)") }
        if FileManager.default.fileExists(atPath: path) {
            try check(path, place)
        } else if let data = ResumeData.left(at: path), data.hasMirrorBytes != true {
            try check(data, place)
        }
    }

    /// Compares a whole file with all versions, and removes it.
    private func check(_ path: String, _ place: String) throws {
        tally.withLock { $0.files += 1 }
        if !Servers.versions.contains(try Data(contentsOf: URL(filePath: path))) { note("\(place): a wrong file") }
        for name in try FileManager.default.contentsOfDirectory(atPath: directory)
        where "\(directory)/\(name)".hasPrefix(path) {
            try FileManager.default.removeItem(atPath: "\(directory)/\(name)")
        }
    }

    /// Compares the bytes that a record counts with the version to which they belong.
    private func check(_ data: ResumeData, _ place: String) throws {
        let partial = try Data(contentsOf: URL(filePath: data.partialFile))
        let ranges = ([0..<data.offset] + (data.parts?.ranges ?? [])).filter { !$0.isEmpty }
        tally.withLock { tally in
            tally.records += 1
            tally.ranges += ranges.count
        }
        let tags = Servers.versions.indices.map(Servers.entityTag)
        // Before a response, or if several servers send the file, only the digest tells to which version bytes belong.
        let version =
            tags.firstIndex { data.representation.validator == .entityTag(WireText($0)) }
            ?? digests.firstIndex { data.expectedDigest == $0 }
        guard let version else {
            if data.completedBytes > 0 { note("\(place): a record of no version") }
            return
        }
        for range in ranges {
            let range = Int(range.lowerBound)..<Int(range.upperBound)
            guard range.upperBound <= partial.count, partial[range] == Servers.versions[version][range] else {
                note("\(place): wrong bytes at \(range)")
                continue
            }
        }
    }

    private func finish(_ path: String) async throws {
        let manager = SessionManager { $0.proxy = .none }
        for url in servers.urls + servers.urls + servers.urls {
            do {
                _ = try await manager.download(Request(url: url), to: .file(path), options: options()).value
                return try check(path, "\(path) at the end")
            } catch {
                continue
            }
        }
        note("\(path): not received at the end")
    }

    private func note(_ problem: String) {
        tally.withLock { $0.wrong.append(problem) }
    }
}
