// SPDX-License-Identifier: MIT

import ANSystem
import FoundationEssentials

/// A decoder of a pre-Unicode charset by the WHATWG Encoding Standard, in its error mode “fatal”.
///
/// glibc converts most characters. Those whose meaning or validity differs in the standard are found here, as are
/// characters of charsets that are converted as others with the same table.
struct LegacyDecoder: ~Copyable {
    private let charset: LegacyCharset
    private var converter: CharsetConverter
    private var text = ""
    /// The bytes to convert before the next scalar is added.
    private var pending: [UInt8] = []

    /// The error of invalid bytes.
    private struct Invalid: Error {}

    /// Returns the decoded text; `nil` if the bytes are invalid in the charset, or glibc does not know it.
    static func decode(_ bytes: Data, _ charset: LegacyCharset) -> String? {
        do {
            var decoder = LegacyDecoder(charset, try CharsetConverter(from: charset.systemName))
            return try decoder.decode(bytes)
        } catch {
            return nil
        }
    }

    private init(_ charset: LegacyCharset, _ converter: consuming CharsetConverter) {
        self.charset = charset
        self.converter = converter
    }

    private mutating func decode(_ bytes: Data) throws -> String {
        switch charset.name {
        case "big5", "gbk", "gb18030", "shift_jis", "euc-kr": try decodeDoubleBytes(bytes)
        case "euc-jp": try decodeEUCJP(bytes)
        case "iso-2022-jp": try decodeISO2022JP(bytes)
        default: return try decodeSingleBytes(bytes)
        }
        try flush()
        return text
    }

    // MARK: Output

    private mutating func add(_ scalar: UInt32) throws {
        guard let scalar = Unicode.Scalar(scalar) else { throw Invalid() }
        try flush()
        text.unicodeScalars.append(scalar)
    }

    private mutating func flush() throws {
        guard !pending.isEmpty else { return }
        text += String(decoding: try converter.utf8(of: Data(pending).bytes), as: UTF8.self)
        pending = []
    }

    /// Adds a character of JIS X 0208 by its row and cell, both from 0x21 to 0x7E, as bytes of Shift_JIS.
    private mutating func addJIS0208(_ row: UInt8, _ cell: UInt8) {
        let pointer = Int(row - 0x21) * 94 + Int(cell - 0x21)
        let (lead, trail) = pointer.quotientAndRemainder(dividingBy: 188)
        pending += [UInt8(lead + (lead < 0x1F ? 0x81 : 0xC1)), UInt8(trail + (trail < 0x3F ? 0x40 : 0x41))]
    }

    // MARK: Charsets

    /// Decodes each byte alone: glibc would combine letters and marks of Windows-1255 and Windows-1258.
    private mutating func decodeSingleBytes(_ bytes: Data) throws -> String {
        let exceptions = Self.exceptions[charset.name] ?? [:]
        var table: [UInt32?] = (0..<0x80).map { $0 }
        for byte in UInt8(0x80)...0xFF {
            let converted = try? converter.utf8(of: Data([byte]).bytes)
            let scalar = converted.flatMap { String(decoding: $0, as: UTF8.self).unicodeScalars.first?.value }
            // The Windows charsets have control characters where nothing else is defined.
            let control = byte < 0xA0 && charset.name.hasPrefix("windows-") ? UInt32(byte) : nil
            table.append(exceptions[UInt32(byte)] ?? scalar ?? control)
        }
        let scalars = bytes.compactMap { table[Int($0)] }
        guard scalars.count == bytes.count, let text = String(validating: scalars, as: UTF32.self) else {
            throw Invalid()
        }
        return text
    }

    private mutating func decodeDoubleBytes(_ bytes: Data) throws {
        let exceptions = Self.exceptions[charset.name == "gbk" ? "gb18030" : charset.name] ?? [:]
        let isShiftJIS = charset.name == "shift_jis"
        let hasFourBytes = exceptions[0x80] == 0x20AC
        let bytes = Array(bytes)
        var position = 0
        while position < bytes.count {
            let lead = bytes[position]
            let isSingle = lead <= 0x80 || isShiftJIS && 0xA1...0xDF ~= lead
            let isFour =
                hasFourBytes && !isSingle && position + 1 < bytes.count && 0x30...0x39 ~= bytes[position + 1]
            let character = position..<min(position + (isSingle ? 1 : isFour ? 4 : 2), bytes.count)
            position = character.upperBound
            if lead >= 0x80, !exceptions.isEmpty,
                let scalar = exceptions[character.reduce(0) { $0 << 8 | UInt32(bytes[$1]) }]
            {
                try add(scalar)
            } else {
                guard lead != 0x80 else { throw Invalid() }
                pending += bytes[character]
            }
        }
    }

    private mutating func decodeEUCJP(_ bytes: Data) throws {
        var others = try CharsetConverter(from: "EUC-JP-MS")
        var rest = bytes[...]
        while let lead = rest.popFirst() {
            guard lead >= 0x80 else {
                pending.append(lead)
                continue
            }
            guard let second = rest.popFirst(), 0xA1...0xFE ~= second else { throw Invalid() }
            switch lead {
            case 0x8E:
                guard second <= 0xDF else { throw Invalid() }
                pending.append(second)
            case 0x8F:
                // JIS X 0212, whose last row is 0x6D; glibc has characters of vendors after it.
                guard let third = rest.popFirst(), 0xA1...0xFE ~= third, second <= 0xED else { throw Invalid() }
                let scalar = String(decoding: try others.utf8(of: Data([lead, second, third]).bytes), as: UTF8.self)
                try add(second == 0xA2 && third == 0xC3 ? 0xA6 : scalar.unicodeScalars.first?.value ?? 0)
            case 0xA1...0xFE: addJIS0208(lead & 0x7F, second & 0x7F)
            default: throw Invalid()
            }
        }
    }

    /// The character sets that ISO-2022-JP selects by escape sequences.
    private enum Selection { case ascii, roman, katakana, jis0208 }

    private mutating func decodeISO2022JP(_ bytes: Data) throws {
        var selection = Selection.ascii
        var followsEscape = false
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            if byte == 0x1B {
                // An escape sequence without effect could hide the text after it from others.
                guard !followsEscape else { throw Invalid() }
                followsEscape = true
                switch (rest.popFirst(), rest.popFirst()) {
                case (0x28, 0x42): selection = .ascii
                case (0x28, 0x4A): selection = .roman
                case (0x28, 0x49): selection = .katakana
                case (0x24, 0x40), (0x24, 0x42): selection = .jis0208
                default: throw Invalid()
                }
                continue
            }
            followsEscape = false
            switch (selection, byte) {
            case (.roman, 0x5C): try add(0xA5)
            case (.roman, 0x7E): try add(0x203E)
            case (.ascii, 0..<0x80), (.roman, 0..<0x80):
                guard byte != 0x0E, byte != 0x0F else { throw Invalid() }
                pending.append(byte)
            case (.katakana, 0x21...0x5F): pending.append(byte | 0x80)
            case (.jis0208, 0x21...0x7E):
                guard let cell = rest.popFirst(), 0x21...0x7E ~= cell else { throw Invalid() }
                addJIS0208(byte, cell)
            default: throw Invalid()
            }
        }
    }

    // MARK: Tables

    /// The characters that have another meaning in glibc, or none, by their bytes.
    private static let exceptions: [String: [UInt32: UInt32]] = [
        "koi8-u": [0xAE: 0x45E, 0xBE: 0x40E], "macintosh": [0xC6: 0x2206, 0xF0: 0xF8FF],
        "x-mac-cyrillic": [0xFF: 0x20AC],
        "windows-1255": [0xCA: 0x5BA], "shift_jis": [0x80: 0x80],
        "gb18030": [
            0x80: 0x20AC, 0xA3A0: 0x3000, 0xFE51: 0xE816, 0xFE52: 0xE817, 0xFE53: 0xE818, 0xFE6C: 0xE831,
            0xFE76: 0xE83B, 0xFE91: 0xE855,
        ].merging(zip(0x8235_9037...0x8235_9039, 0x9FB4...0x9FB6)) { $1 }
            .merging(zip(0x8235_9130...0x8235_9134, 0x9FB7...0x9FBB)) { $1 }
            .merging(zip(0x8431_8236...0x8431_8239, 0xFE10...0xFE13)) { $1 }
            .merging(zip(0x8431_8330...0x8431_8335, 0xFE14...0xFE19)) { $1 },
        "big5": Dictionary(
            uniqueKeysWithValues: big5.split(whereSeparator: \.isWhitespace).map { entry in
                let scalars = entry.unicodeScalars
                return (UInt32(String(entry.prefix(4)), radix: 16) ?? 0, scalars.last?.value ?? 0)
            }),
    ]

    /// The bytes and the character, for those that differ in Big5-HKSCS of glibc 2.36.
    private static let big5 = """
        8E69箸 8E6F簆 8E7E糎 8EAB緒 8EB4縝 8ECD者 8ED0耨 8F57菁 8F69蒨 8F6E萏 8FCB覦 8FCC覩 8FFE起 906D都 907A銹 90DC靜
        90F1響 91BF鼖 9244蔃 92AF兙 92B0兛 92B1兝 92B2兞 92C8鍮 92D1瑹 9447浧 94CA禛 95D9邗 9644靝 96ED瀞 96FC嬨 9B76爁
        9B78矗 9B7B纇 9BC6駖 9BDE釔 9BEC惞 9BF6澶 9C42輶 9C53侻 9C62營 9C68鄄 9C6B鷰 9C77菏 9CBC尐 9CBD秣 9CD0婧 9D57輋
        9D5A筑 9DC4拐 9EA9恢 9EEF痹 9EFD汊 9F60鬮 9F66鼗 9FCB僭 9FD8弌 A063蠏 A077拎 A0D5瑨 A0DF煢 A0E4牐 A145‧ A14E﹑
        A15A╴ A1C2¯ A1C3￣ A1C5ˍ A1E3～ A1F2⊕ A1F3⊙ A1FE／ A240＼ A241∕ A242﹨ A244￥ A246￠ A247￡ A2CC十 A2CE卅
        A3C0␀ A3C1␁ A3C2␂ A3C3␃ A3C4␄ A3C5␅ A3C6␆ A3C7␇ A3C8␈ A3C9␉ A3CA␊ A3CB␋ A3CC␌ A3CD␍ A3CE␎ A3CF␏
        A3D0␐ A3D1␑ A3D2␒ A3D3␓ A3D4␔ A3D5␕ A3D6␖ A3D7␗ A3D8␘ A3D9␙ A3DA␚ A3DB␛ A3DC␜ A3DD␝ A3DE␞ A3DF␟
        A3E0␡ A3E1€ C6CF廴 C6D3无 C6D5癶 C6D7隶 C6DE〃 C6DF仝 FA5F倩 FA66偽 FABD包 FAC5卄 FAD5卿 FB48嘅 FBB8婷 FBF3幵
        FBF9廐 FC4F彘 FC6C悤 FCB9撐 FCE2晴 FCF1杞 FDB7沜 FDB8渝 FDBB港 FDF1煮 FE52猪 FE6F瑜 FEAA瓩 FEDD砉
        """
}

/// A pre-Unicode charset that responses may declare: its name and labels in the WHATWG Encoding Standard, and the name
/// in glibc of a charset with its characters.
struct LegacyCharset: Hashable {
    let name: String
    let systemName: String

    /// Creates the charset with a label in lower case; `nil` if the label is unknown.
    init?(label: String) {
        let found = Self.table.first { $0.name == label || $0.labels.contains(label) }
        guard let found else { return nil }
        name = found.name
        systemName = found.system
    }

    private static let table: [(name: String, system: String, labels: [String])] = [
        ("ibm866", "IBM866", ["866", "cp866", "csibm866"]),
        (
            "iso-8859-2", "ISO-8859-2",
            ["iso8859-2", "iso_8859-2", "latin2", "l2", "csisolatin2", "iso-ir-101", "iso88592", "iso_8859-2:1987"]
        ),
        (
            "iso-8859-3", "ISO-8859-3",
            ["iso8859-3", "iso_8859-3", "latin3", "l3", "csisolatin3", "iso-ir-109", "iso88593", "iso_8859-3:1988"]
        ),
        (
            "iso-8859-4", "ISO-8859-4",
            ["iso8859-4", "iso_8859-4", "latin4", "l4", "csisolatin4", "iso-ir-110", "iso88594", "iso_8859-4:1988"]
        ),
        (
            "iso-8859-5", "ISO-8859-5",
            ["iso8859-5", "iso_8859-5", "cyrillic", "csisolatincyrillic", "iso-ir-144", "iso88595", "iso_8859-5:1988"]
        ),
        (
            "iso-8859-6", "ISO-8859-6",
            [
                "iso8859-6", "iso_8859-6", "arabic", "ecma-114", "asmo-708", "csiso88596e", "csiso88596i",
                "csisolatinarabic", "iso-8859-6-e", "iso-8859-6-i", "iso-ir-127", "iso88596", "iso_8859-6:1987",
            ]
        ),
        (
            "iso-8859-7", "ISO-8859-7",
            [
                "iso8859-7", "iso_8859-7", "greek", "greek8", "ecma-118", "elot_928", "csisolatingreek", "iso-ir-126",
                "iso88597", "iso_8859-7:1987", "sun_eu_greek",
            ]
        ),
        (
            "iso-8859-8", "ISO-8859-8",
            [
                "iso8859-8", "iso_8859-8", "hebrew", "visual", "iso-8859-8-e", "csiso88598e", "csisolatinhebrew",
                "iso-ir-138", "iso88598", "iso_8859-8:1988",
            ]
        ),
        ("iso-8859-8-i", "ISO-8859-8", ["logical", "csiso88598i"]),
        (
            "iso-8859-9", "ISO-8859-9",
            ["iso8859-9", "iso_8859-9", "latin5", "l5", "csisolatin5", "iso-ir-148", "iso88599", "iso_8859-9:1989"]
        ),
        ("iso-8859-10", "ISO-8859-10", ["iso8859-10", "latin6", "l6", "csisolatin6", "iso-ir-157", "iso885910"]),
        ("iso-8859-13", "ISO-8859-13", ["iso8859-13", "iso885913"]),
        ("iso-8859-14", "ISO-8859-14", ["iso8859-14", "iso885914"]),
        ("iso-8859-15", "ISO-8859-15", ["iso8859-15", "iso_8859-15", "latin9", "l9", "csisolatin9", "iso885915"]),
        ("iso-8859-16", "ISO-8859-16", []),
        ("koi8-r", "KOI8-R", ["koi", "koi8", "koi8_r", "cskoi8r"]),
        ("koi8-u", "KOI8-U", ["koi8-ru"]),
        ("macintosh", "MACINTOSH", ["mac", "x-mac-roman", "csmacintosh"]),
        ("windows-874", "CP874", ["tis-620", "iso-8859-11", "iso8859-11", "dos-874", "iso885911"]),
        ("windows-1250", "CP1250", ["cp1250", "x-cp1250"]),
        ("windows-1251", "CP1251", ["cp1251", "x-cp1251"]),
        ("windows-1253", "CP1253", ["cp1253", "x-cp1253"]),
        ("windows-1254", "CP1254", ["cp1254", "x-cp1254"]),
        ("windows-1255", "CP1255", ["cp1255", "x-cp1255"]),
        ("windows-1256", "CP1256", ["cp1256", "x-cp1256"]),
        ("windows-1257", "CP1257", ["cp1257", "x-cp1257"]),
        ("windows-1258", "CP1258", ["cp1258", "x-cp1258"]),
        ("x-mac-cyrillic", "MAC-CYRILLIC", ["x-mac-ukrainian"]),
        (
            "gbk", "GB18030",
            ["gb2312", "gb_2312", "gb_2312-80", "chinese", "csgb2312", "x-gbk", "iso-ir-58", "csiso58gb231280"]
        ),
        ("gb18030", "GB18030", []),
        ("big5", "BIG5-HKSCS", ["big5-hkscs", "cn-big5", "csbig5", "x-x-big5"]),
        ("euc-jp", "CP932", ["x-euc-jp", "cseucpkdfmtjapanese"]),
        ("iso-2022-jp", "CP932", ["csiso2022jp"]),
        ("shift_jis", "CP932", ["shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j", "csshiftjis", "ms932"]),
        (
            "euc-kr", "CP949",
            [
                "ks_c_5601-1987", "ksc5601", "ksc_5601", "korean", "windows-949", "cseuckr", "csksc56011987",
                "iso-ir-149", "ks_c_5601-1989",
            ]
        ),
    ]
}
