// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct UTF8CheckTests {
    @Test func `UTF-8 is checked at every split`() {
        let valid: [[UInt8]] = [
            Array("a€😀ä".utf8), [0xED, 0x9F, 0xBF], [0xEE, 0x80, 0x80], [0xF4, 0x8F, 0xBF, 0xBF], [0xC2, 0x80],
            [0xE0, 0xA0, 0x80],
            [0xF0, 0x90, 0x80, 0x80],
        ]
        let invalid: [[UInt8]] = [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x9F, 0xBF], [0xED, 0xA0, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80], [0xF5], [0xFF], [0xC3, 0x28], [0xE2, 0x82, 0x28],
        ]
        for bytes in valid + invalid {
            for cut in 0...bytes.count {
                var check = UTF8Check()
                let isValid = check.check(Array(bytes[..<cut])) && check.check(Array(bytes[cut...]))
                #expect((isValid && check.isComplete) == valid.contains(bytes))
            }
        }
    }
}
