// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import FoundationEssentials
import SimulationWorld
import Testing

@Suite struct DiskTests {
    private static func file(_ number: Int, _ text: String) -> Disk.File {
        Disk.File(number: number, data: Data(text.utf8))
    }

    /// Returns what many power failures leave, as text: the names with their bytes.
    private static func remains(_ disk: Disk, of files: [String: Disk.File]) -> Set<String> {
        Set(
            (0..<UInt64(200)).map { seed in
                var random = SplitMix64(seed: seed)
                let left = disk.remains(of: files, afterPowerFailure: &random).sorted { $0.key < $1.key }
                return left.map {
                    "\($0.key)=\($0.value.data.map { $0 == 0 ? "0" : String(decoding: [$0], as: UTF8.self) }.joined())"
                }
                .joined(separator: " ")
            })
    }

    @Test func `a name that was not flushed is there or not, and one that was is there`() {
        var disk = Disk()
        let a = Self.file(1, "")
        disk.note(["a": 1], in: "")
        #expect(Self.remains(disk, of: ["a": a]) == ["", "a="])
        disk.flush(directory: "x")
        #expect(Self.remains(disk, of: ["a": a]) == ["", "a="])
        disk.flush(directory: "")
        #expect(Self.remains(disk, of: ["a": a]) == ["a="])
    }

    @Test func `a file is moved and replaces another one, or neither`() {
        var disk = Disk()
        let (old, new) = (Self.file(1, "1"), Self.file(2, "2"))
        for file in [old, new] { disk.flush(file, fails: false) }
        disk.note(["b": 1], in: "")
        disk.note(["a": 2, "b": 1], in: "")
        disk.flush(directory: "")
        disk.willLoseName(old)
        disk.note(["b": 2], in: "")
        #expect(Self.remains(disk, of: ["b": new]) == ["a=2 b=1", "b=2"])
        disk.flush(directory: "")
        #expect(Self.remains(disk, of: ["b": new]) == ["b=2"])
    }

    @Test func `of two changes, either may be done`() {
        var disk = Disk()
        let (a, b) = (Self.file(1, ""), Self.file(2, ""))
        disk.note(["a": 1], in: "")
        disk.note(["a": 1, "b": 2], in: "")
        #expect(Self.remains(disk, of: ["a": a, "b": b]) == ["", "a=", "b=", "a= b="])
    }

    @Test func `bytes that were not flushed are there or not`() {
        var disk = Disk()
        disk.note(["a": 1], in: "")
        disk.flush(directory: "")
        #expect(Self.remains(disk, of: ["a": Self.file(1, "xy")]) == ["a=", "a=0", "a=x", "a=00", "a=xy"])
        disk.flush(Self.file(1, "xy"), fails: false)
        #expect(Self.remains(disk, of: ["a": Self.file(1, "xy")]) == ["a=xy"])
        #expect(Self.remains(disk, of: ["a": Self.file(1, "")]) == ["a=", "a=x", "a=xy"])
    }

    @Test func `bytes whose flush has failed are lost, also if the next one succeeds`() {
        var disk = Disk()
        disk.flush(Self.file(1, "x"), fails: false)
        disk.flush(Self.file(1, "xy"), fails: true)
        disk.flush(Self.file(1, "xy"), fails: false)
        #expect(disk.remains(of: ["a": Self.file(1, "xy")]) == ["a": Self.file(1, "x\0")])
        disk.write()
        disk.flush(Self.file(1, "xyz"), fails: false)
        #expect(disk.remains(of: ["a": Self.file(1, "xyz")]) == ["a": Self.file(1, "xyz")])
    }
}
