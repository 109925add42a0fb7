// SPDX-License-Identifier: MIT

extension StringProtocol {
    /// Whether the text contains an ASCII control character, 0x00 to 0x1F or 0x7F. In a header field, a line break
    /// would begin another field, and in a C string, a NUL would end the text.
    package var hasControlCharacters: Bool { utf8.contains { $0 < 0x20 || $0 == 0x7F } }

    /// The text on one line, as a terminal or a log can print it: control characters, also those of the C1 range, format
    /// characters such as those that change the direction of text, and line separators are replaced by spaces.
    ///
    /// Whatever prints the text of a server uses it, because the text could otherwise control the terminal.
    package var printable: String {
        guard !utf8.allSatisfy({ 0x20..<0x7F ~= $0 }) else { return String(self) }
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: text.append(" ")
            default: text.append(scalar)
            }
        }
        return String(text)
    }
}
