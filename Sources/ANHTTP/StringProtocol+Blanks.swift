// SPDX-License-Identifier: MIT

extension StringProtocol {
    /// The text without spaces and tabs at both ends (RFC 9110 §5.6.3).
    package var trimmingBlanks: String {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let bytes = Substring(self).utf8
        guard let last = bytes.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(bytes[...last].drop(while: isBlank)))
    }
}
