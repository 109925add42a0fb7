// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct ComputedDigestTests {
    /// The examples of FIPS 180-4.
    @Test(arguments: [
        ("", ContentDigest.Algorithm.sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", .sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abc", .sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ])
    func `digests are those of the standard`(
        text: String, algorithm: ContentDigest.Algorithm, expected: String
    ) throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Data(text.utf8), to: "file")
        #expect(try ContentDigest(of: Data(text.utf8), by: algorithm).hexadecimal == expected)
        #expect(try ContentDigest(ofFile: path, by: algorithm).hexadecimal == expected)
    }

    @Test func `a large file is read in pieces`() throws {
        let bytes = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 * 7) })
        let directory = try TemporaryDirectory()
        let path = try directory.write(bytes, to: "file")
        #expect(try ContentDigest(ofFile: path) == ContentDigest(of: bytes))
    }

    @Test func `a missing file and a directory are errors`() throws {
        let directory = try TemporaryDirectory()
        for path in ["\(directory.path)/missing", directory.path] {
            let error = #expect(throws: SessionError.self) { try ContentDigest(ofFile: path) }
            guard case .file(let failure) = error else { throw Unexpected() }
            #expect(failure.path == path)
        }
    }

    @Test func `the value of a field is read as the same digest`() throws {
        let digest = try ContentDigest(of: Data("abc".utf8))
        #expect(digest.fieldValue == "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:")
        let url = try #require(URL(string: "http://a.example/"))
        let head = ResponseHead(status: .ok, headers: [.contentDigest: digest.fieldValue], url: url)
        #expect(head.headers.contentDigests == [digest])
    }

    private struct Unexpected: Error {}

    @MainActor @Test func `another task of the thread runs after each 4 MiB that are hashed`() async {
        var turns = HashingTurns()
        for isTurn in [false, false, false, true, false, false, false, true] {
            let hasRun = Lock(false)
            let task = Task { hasRun.withLock { $0 = true } }
            await turns.pass(1 << 20)
            #expect(hasRun.withLock(\.self) == isTurn)
            await task.value
        }
    }
}
