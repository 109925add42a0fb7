// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// A character encoding of text.
///
/// Unicode, ASCII, Latin-1 and Windows-1252 are decoded here, all others by glibc's iconv(3), which keeps them in files of
/// its own: an encoding of which the file is not installed is not known.
public struct TextEncoding: Hashable, Sendable, CustomStringConvertible {
    /// The name that it has in `Content-Type`, in lower case.
    public let name: String
    let method: Method

    /// How bytes are decoded.
    enum Method: Hashable, Sendable {
        case utf8
        /// In the order that the byte order mark gives; big-endian without one.
        case utf16, utf16LittleEndian, utf16BigEndian
        case utf32, utf32LittleEndian, utf32BigEndian
        case ascii, latin1, windows1252
        /// By iconv(3), where the charset has this name.
        case system(String)
    }

    private init(_ name: String, _ method: Method) {
        self.name = name
        self.method = method
    }

    /// UTF-8.
    public static let utf8 = TextEncoding("utf-8", .utf8)
    /// UTF-16 in the order that its byte order mark gives; big-endian without one (RFC 2781 §4.3).
    public static let utf16 = TextEncoding("utf-16", .utf16)
    /// UTF-16, little-endian.
    public static let utf16LittleEndian = TextEncoding("utf-16le", .utf16LittleEndian)
    /// UTF-16, big-endian.
    public static let utf16BigEndian = TextEncoding("utf-16be", .utf16BigEndian)
    /// UTF-32 in the order that its byte order mark gives; big-endian without one.
    public static let utf32 = TextEncoding("utf-32", .utf32)
    /// UTF-32, little-endian.
    public static let utf32LittleEndian = TextEncoding("utf-32le", .utf32LittleEndian)
    /// UTF-32, big-endian.
    public static let utf32BigEndian = TextEncoding("utf-32be", .utf32BigEndian)
    /// ASCII; bytes above 127 are invalid.
    public static let ascii = TextEncoding("us-ascii", .ascii)
    /// ISO 8859-1, where each byte is the scalar of that number.
    public static let latin1 = TextEncoding("iso-8859-1", .latin1)
    /// Windows-1252, with the table of the WHATWG Encoding Standard: no byte is invalid.
    public static let windows1252 = TextEncoding("windows-1252", .windows1252)

    private static let native: [TextEncoding] = [
        .utf8, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian, .ascii,
        .latin1, .windows1252,
    ]

    /// The encoding with this name or one of its usual aliases, in any case; nil when it is not known.
    ///
    /// Names are those of the WHATWG Encoding Standard, and `utf-32` with its orders. What servers call `shift_jis` is
    /// Windows-31J, `gb2312` is GB 18030, `euc-kr` is Windows-949, as there. These mean what their own standards say, and
    /// something else there:
    ///
    /// | name | here | in the Encoding Standard |
    /// |---|---|---|
    /// | `iso-8859-1`, `latin1` | ISO 8859-1 | Windows-1252 |
    /// | `us-ascii`, `ascii` | ASCII; other bytes are invalid | Windows-1252 |
    /// | `iso-8859-9`, `latin5` | ISO 8859-9 | Windows-1254 |
    /// | `utf-16` | big-endian without a byte order mark | little-endian |
    ///
    /// Others, such as UTF-7, are not known: a server could make a program read markup in them that nothing before it has
    /// seen. See ``init(systemCharset:)`` for all.
    public init?(charset: String) {
        let name = charset.lowercased()
        switch name {
        case "utf8": self = .utf8
        case "utf16": self = .utf16
        case "utf32": self = .utf32
        case "ascii": self = .ascii
        case "latin1", "iso8859-1", "iso_8859-1", "l1": self = .latin1
        case "cp1252", "x-cp1252": self = .windows1252
        default:
            if let encoding = Self.native.first(where: { $0.name == name }) {
                self = encoding
            } else if let legacy = LegacyCharset(label: name) {
                self.init(systemCharset: legacy.systemName, named: legacy.name)
            } else {
                return nil
            }
        }
    }

    /// The encoding that glibc knows under this name, such as `IBM1047`; `iconv --list` prints all. Nil when there is none.
    public init?(systemCharset: String) {
        self.init(systemCharset: systemCharset, named: systemCharset.lowercased())
    }

    private init?(systemCharset: String, named name: String) {
        guard (try? CharsetConverter(from: systemCharset)) != nil else { return nil }
        self.init(name, .system(systemCharset))
    }

    /// The encoding whose byte order mark the bytes begin with.
    init?(byteOrderMarkOf bytes: Data) {
        // UTF-32's little-endian mark begins with UTF-16's, so it comes first.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
            self = .utf8
        } else if bytes.starts(with: [0xFF, 0xFE, 0, 0]) || bytes.starts(with: [0, 0, 0xFE, 0xFF]) {
            self = .utf32
        } else if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
            self = .utf16
        } else {
            return nil
        }
    }

    /// The name.
    public var description: String { name }
}
