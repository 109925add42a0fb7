// SPDX-License-Identifier: MIT

extension StringProtocol {
    /// Whether the text contains an ASCII control character, 0x00 to 0x1F or 0x7F. In a header field, a line break
    /// would begin another field, and in a C string, a NUL would end the text.
    package var hasControlCharacters: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }
}
