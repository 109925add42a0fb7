// SPDX-License-Identifier: MIT

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
