// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import TestSupport
import Testing

/// Files with what servers have sent, which may be secret.
@Suite(.timeLimit(.minutes(5))) struct PrivateFilesTests {
    private let directory: TemporaryDirectory
    private let transport = MockTransport { _ in
        .data(Data(repeating: 1, count: 200_000), headers: [.cacheControl: "max-age=60"])
    }

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// The modes of the files in the directory, or in one within it.
    private func modes(in subdirectory: String = ".") throws -> [Int] {
        let path = "\(directory.path)/\(subdirectory)"
        return try FileManager.default.contentsOfDirectory(atPath: path).compactMap { name in
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
            return attributes[.type] as? FileAttributeType == .typeRegular ? attributes[.posixPermissions] as? Int : nil
        }
    }

    @Test func `an archive can be read by its owner only`() async throws {
        let recorder = try HARRecorder(path: "\(directory.path)/a.har")
        let manager = SessionManager(on: transport) { recorder.install(in: &$0) }
        _ = try await manager.get("x")
        try await recorder.close()
        #expect(try modes() == [0o600])
    }

    @Test func `an archive replaces a file that others can read`() async throws {
        let other = try directory.write(Data("x".utf8), to: "other")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: other)
        try FileManager.default.linkItem(atPath: other, toPath: "\(directory.path)/a.har")
        let recorder = try HARRecorder(path: "\(directory.path)/a.har")
        try await recorder.close()
        #expect(try modes().sorted() == [0o600, 0o644])
        #expect(try directory.read("other") == Data("x".utf8))
    }

    @Test func `a cassette can be read by its owner only`() async throws {
        let cassette = try RecordingTransport(wrapping: transport, to: "\(directory.path)/a.har", mode: .record)
        let manager = SessionManager(on: cassette)
        _ = try await manager.get("x")
        await manager.shutdown()
        #expect(try modes() == [0o600])
    }

    @Test func `the files of a cache can be read by their owner only`() async throws {
        let manager = SessionManager(on: transport) { $0.cache = .disk(directory.path) }
        _ = try await manager.get("x")
        await manager.shutdown()
        // An entry and its body, beside the salt.
        #expect(try modes(in: "v2") == [0o600, 0o600])
    }

    @Test func `a download that has no place yet can be read by its owner only`() async throws {
        let found = Lock([Int]())
        let manager = SessionManager(on: transport)
        let destination = DownloadDestination.chosen(temporaryDirectory: directory.path) { _ in
            let modes = try modes()
            found.set(\.self, to: modes)
            return "\(directory.path)/file"
        }
        _ = try await manager.download("x", to: destination).value
        #expect(found.withLock(\.self) == [0o600])
    }
}
