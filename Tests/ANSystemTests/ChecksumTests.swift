// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials
import Testing

@Suite struct ChecksumTests {
    /// The test vectors of independent implementations.
    @Test(
        arguments: [
            ("", 0, 0xEF46_DB37_51D8_E999), ("a", 0, 0xD24E_C4F1_A98C_6E5B), ("abc", 0, 0x44BC_2CF5_AD77_0999),
            ("0123456789abcdefghijklmnopqrstuvwxyz", 0, 0x6919_6C1B_3AF0_BFF9),
            ("xxhash", 20_141_025, 0xB559_B98D_844E_0635),
        ] as [(String, UInt64, UInt64)])
    func `a checksum is XXH64`(text: String, seed: UInt64, expected: UInt64) {
        #expect(Checksum.of(text, seed: seed) == expected)
        #expect(Checksum.of(Data(text.utf8).bytes, seed: seed) == expected)
    }

    @Test(arguments: [1, 3, 8, 31, 32, 33, 64])
    func `the checksum does not depend on the pieces`(size: Int) {
        let bytes = Data((0..<200).map { UInt8($0) })
        var checksum = Checksum()
        for start in stride(from: 0, to: bytes.count, by: size) {
            checksum.update(Data(bytes[start..<min(start + size, bytes.count)]).bytes)
        }
        #expect(checksum.value == Checksum.of(bytes.bytes))
    }

    @Test func `each changed bit changes the checksum`() {
        let bytes = Data((0..<70).map { UInt8($0) })
        var values: Set = [Checksum.of(bytes.bytes)]
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << (bit % 8)
            values.insert(Checksum.of(changed.bytes))
        }
        #expect(values.count == bytes.count * 8 + 1)
    }
}
