// SPDX-License-Identifier: MIT

import Foundation
import FuzzTargets
import Testing

/// The inputs of `make fuzz` that are part of the package, without libFuzzer.
@Suite struct CorpusTests {
    private static let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fuzz/Corpus")

    @Test(arguments: FuzzTarget.all)
    func `a target holds for its corpus, truncated anywhere, and with any byte changed`(target: FuzzTarget) async throws
    {
        let directory = Self.directory.appending(path: target.name)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path()).sorted()
        #expect(!names.isEmpty)
        for name in names {
            let input = [UInt8](try Data(contentsOf: directory.appending(path: name)))
            #expect(input.count <= target.maximumSize, "\(name)")
            await #expect(throws: Never.self, "\(name)") { try await target.check(input) }
            // A few positions of each input are enough here; libFuzzer tries all.
            for position in stride(from: 0, to: input.count, by: max(1, input.count / 8)) {
                await #expect(throws: Never.self, "\(name) up to \(position)") {
                    try await target.check(Array(input[..<position]))
                }
                var changed = input
                changed[position] ^= 0x41
                await #expect(throws: Never.self, "\(name) changed at \(position)") { try await target.check(changed) }
            }
        }
    }

    @Test func `each directory of the corpus belongs to a target`() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.directory.path())
        #expect(Set(names) == Set(FuzzTarget.all.map(\.name)))
    }
}
