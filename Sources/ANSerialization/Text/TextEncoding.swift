// SPDX-License-Identifier: MIT

import ANSystem
package import FoundationEssentials

/// A character encoding, for a ``StringResponseSerializer``.
///
/// Unicode encodings, ASCII, Latin-1 and Windows-1252 are implemented by the library, all others with the conversion
/// modules of glibc's iconv(3), corrected where the WHATWG Encoding Standard differs. An encoding whose module is not
/// installed is unknown. The byte order mark of a Unicode encoding is not part of the decoded text.
public struct TextEncoding: Hashable, Sendable, CustomStringConvertible {
    /// The name of the encoding in `Content-Type`, in lower case. For an encoding created with an alias it is the
    /// standard name, such as `utf-8` for `UTF8` and `gbk` for `gb2312`.
    public let name: String
    let method: Method

    /// The implementation of an encoding.
    enum Method: Hashable, Sendable {
        case utf8
        /// The byte order is that of the byte order mark; big-endian without one.
        case utf16, utf16LittleEndian, utf16BigEndian
        case utf32, utf32LittleEndian, utf32BigEndian
        case ascii, latin1, windows1252
        /// A charset of the WHATWG Encoding Standard that predates Unicode.
        case legacy(LegacyCharset)
        /// The iconv(3) charset with the given name.
        case system(String)
    }

    private init(_ name: String, _ method: Method) {
        self.name = name
        self.method = method
    }

    /// UTF-8 (RFC 3629).
    public static let utf8 = TextEncoding("utf-8", .utf8)
    /// UTF-16 in the byte order of the byte order mark; big-endian without one (RFC 2781 §4.3).
    public static let utf16 = TextEncoding("utf-16", .utf16)
    /// UTF-16, little-endian.
    package static let utf16LittleEndian = TextEncoding("utf-16le", .utf16LittleEndian)
    /// UTF-16, big-endian.
    package static let utf16BigEndian = TextEncoding("utf-16be", .utf16BigEndian)
    /// UTF-32 in the byte order of the byte order mark; big-endian without one.
    package static let utf32 = TextEncoding("utf-32", .utf32)
    /// UTF-32, little-endian.
    package static let utf32LittleEndian = TextEncoding("utf-32le", .utf32LittleEndian)
    /// UTF-32, big-endian.
    package static let utf32BigEndian = TextEncoding("utf-32be", .utf32BigEndian)
    /// ASCII; bytes above 127 are invalid.
    public static let ascii = TextEncoding("us-ascii", .ascii)
    /// ISO 8859-1, in which each byte is the Unicode scalar with that number, so that every byte is valid.
    public static let latin1 = TextEncoding("iso-8859-1", .latin1)
    /// Windows-1252 with the table of the WHATWG Encoding Standard, in which every byte is valid.
    public static let windows1252 = TextEncoding("windows-1252", .windows1252)

    private static let native: [TextEncoding] = [
        .utf8, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian, .utf32BigEndian, .ascii,
        .latin1, .windows1252,
    ]

    /// The number of bytes of the longest alias, and some more.
    private static let longestName = 64

    /// Creates the encoding with a name or common alias, ignoring case; `nil` if it is unknown, or its conversion
    /// module is not installed.
    ///
    /// The names are the labels of the WHATWG Encoding Standard, except for `x-user-defined` and those of its encoding
    /// `replacement`, and `utf-32` with its byte orders. Text is decoded as in that standard, with which `shift_jis` is
    /// Windows-31J, `gbk` and its alias `gb2312` are GB 18030, and `euc-kr` is Windows-949. The following names have the
    /// meaning of their own standards instead:
    ///
    /// | name | here | in the Encoding Standard |
    /// |---|---|---|
    /// | `iso-8859-1`, `latin1` | ISO 8859-1 | Windows-1252 |
    /// | `us-ascii`, `ascii` | ASCII; other bytes are invalid | Windows-1252 |
    /// | `iso-8859-9`, `latin5` | ISO 8859-9 | Windows-1254 |
    /// | `utf-16` | big-endian without a byte order mark | little-endian |
    ///
    /// Other encodings such as UTF-7 are unknown, because a server could use them to hide markup from filters.
    public init?(charset: String) {
        // Comparing long text can take long; see ``CombiningRun``.
        guard charset.utf8.count <= Self.longestName else { return nil }
        let name = charset.lowercased()
        switch name {
        case "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8": self = .utf8
        case "utf16": self = .utf16
        case "csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff": self = .utf16LittleEndian
        case "unicodefffe": self = .utf16BigEndian
        case "utf32": self = .utf32
        case "ascii", "ansi_x3.4-1968": self = .ascii
        case "latin1", "iso8859-1", "iso_8859-1", "l1", "iso88591", "iso_8859-1:1987", "iso-ir-100", "csisolatin1",
            "cp819", "ibm819":
            self = .latin1
        case "cp1252", "x-cp1252": self = .windows1252
        default:
            if let encoding = Self.native.first(where: { $0.name == name }) {
                self = encoding
            } else if let legacy = LegacyCharset(label: name) {
                guard (try? CharsetConverter(from: legacy.systemName)) != nil else { return nil }
                self.init(legacy.name, .legacy(legacy))
            } else {
                return nil
            }
        }
    }

    /// Creates the encoding with a name in glibc, such as `IBM1047`; `nil` if it is unknown. `iconv --list` prints all
    /// names.
    package init?(systemCharset: String) {
        guard (try? CharsetConverter(from: systemCharset)) != nil else { return nil }
        self.init(systemCharset.lowercased(), .system(systemCharset))
    }

    /// Creates the encoding of a document that begins with ASCII, indicated by the zeros among its first four bytes; `nil`
    /// without any.
    package init?(zerosOf bytes: Data) {
        let start = Array(bytes.prefix(4))
        guard start.count == 4 else { return nil }
        switch (start[0], start[1], start[2], start[3]) {
        case (0, 0, 0, _): self = .utf32BigEndian
        case (_, 0, 0, 0): self = .utf32LittleEndian
        case (0, _, _, _): self = .utf16BigEndian
        case (_, 0, _, _): self = .utf16LittleEndian
        default: return nil
        }
    }

    /// Creates the encoding indicated by a byte order mark; `nil` without one.
    package init?(byteOrderMarkOf bytes: Data) {
        // The UTF-32 little-endian mark begins with that of UTF-16, so it is compared first.
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

    /// The name of the encoding, the same as ``name``.
    public var description: String { name }
}

extension TextEncoding {
    /// Returns the decoded text without a byte order mark; `nil` if the bytes are invalid.
    package func decode(_ bytes: Data) -> String? {
        switch method {
        case .utf8:
            return String(validating: bytes, as: UTF8.self).map(Self.withoutMark)
        case .utf16:
            return Self.utf16(bytes, isLittleEndian: bytes.starts(with: [0xFF, 0xFE]))
        case .utf16LittleEndian:
            return Self.utf16(bytes, isLittleEndian: true)
        case .utf16BigEndian:
            return Self.utf16(bytes, isLittleEndian: false)
        case .utf32:
            return Self.utf32(bytes, isLittleEndian: bytes.starts(with: [0xFF, 0xFE, 0, 0]))
        case .utf32LittleEndian:
            return Self.utf32(bytes, isLittleEndian: true)
        case .utf32BigEndian:
            return Self.utf32(bytes, isLittleEndian: false)
        case .ascii:
            return bytes.allSatisfy { $0 < 0x80 } ? String(decoding: bytes, as: UTF8.self) : nil
        case .latin1:
            return Self.singleBytes(bytes) { UInt32($0) }
        case .windows1252:
            return Self.singleBytes(bytes) { 0x80...0x9F ~= $0 ? Self.windows1252Table[Int($0) - 0x80] : UInt32($0) }
        case .legacy(let charset):
            return LegacyDecoder.decode(bytes, charset)
        case .system(let charset):
            do throws(SystemError) {
                var converter = try CharsetConverter(from: charset)
                return Self.withoutMark(String(decoding: try converter.utf8(of: bytes.bytes), as: UTF8.self))
            } catch {
                return nil
            }
        }
    }

    private static func utf16(_ bytes: Data, isLittleEndian: Bool) -> String? {
        guard let units = units(of: bytes, width: 2, isLittleEndian: isLittleEndian) else { return nil }
        return String(validating: units.lazy.map { UInt16(truncatingIfNeeded: $0) }, as: UTF16.self).map(withoutMark)
    }

    private static func utf32(_ bytes: Data, isLittleEndian: Bool) -> String? {
        guard let units = units(of: bytes, width: 4, isLittleEndian: isLittleEndian) else { return nil }
        return String(validating: units, as: UTF32.self).map(withoutMark)
    }

    /// Returns the bytes as integers of `width` bytes; `nil` if their number is not a multiple of it.
    private static func units(of bytes: Data, width: Int, isLittleEndian: Bool) -> [UInt32]? {
        guard bytes.count.isMultiple(of: width) else { return nil }
        var units: [UInt32] = []
        units.reserveCapacity(bytes.count / width)
        var unit: UInt32 = 0
        var shift = 0
        for byte in bytes {
            unit = isLittleEndian ? unit | UInt32(byte) << (8 * shift) : unit << 8 | UInt32(byte)
            shift += 1
            if shift == width {
                units.append(unit)
                unit = 0
                shift = 0
            }
        }
        return units
    }

    private static func singleBytes(_ bytes: Data, _ scalar: (UInt8) -> UInt32) -> String? {
        String(validating: bytes.map(scalar), as: UTF32.self)
    }

    private static func withoutMark(_ text: String) -> String {
        text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    }

    /// The characters of Windows-1252 at 0x80 to 0x9F.
    private static let windows1252Table: [UInt32] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
        0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F,
        0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
        0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
    ]
}
