// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import FoundationEssentials
import TestSupport
import Testing

/// Random texts are read by the library and by the module `json` of Python's standard library.
@Suite(.timeLimit(.minutes(1))) struct JSONOracleTests {
    /// Prints, for each line of Base64, the value in a canonical form, or `error`. Python accepts more than RFC 8259,
    /// which is excluded, and keeps the last of several members with one name, here the first.
    private static let script = #"""
        import base64, json, struct, sys

        def refuse(_): raise ValueError()

        def text(string): return string.encode("utf-8").hex()

        def number(value):
            if isinstance(value, int) and not -2**63 <= value < 2**64: value = float(value)
            if isinstance(value, int): return str(value)
            return struct.pack(">d", value).hex()

        def finite(text):
            value = float(text)
            if abs(value) == float("inf"): raise ValueError()
            # Python rounds to zero.
            if value == 0 and any(digit in text.lower().split("e")[0] for digit in "123456789"): raise ValueError()
            return value

        def canonical(value):
            if value is None or value is True or value is False: return str(value)
            if isinstance(value, str): return "s" + text(value)
            if isinstance(value, list): return "[" + ",".join(map(canonical, value)) + "]"
            if isinstance(value, dict):
                return "{" + ",".join(n + ":" + canonical(v) for n, v in sorted((text(n), v) for n, v in value.items())) + "}"
            return number(value)

        def first(pairs):
            result = {}
            for name, value in pairs:
                canonical({name: value})  # Refuses surrogates, also in members that do not count.
                result.setdefault(name, value)
            return result

        for line in sys.stdin:
            try:
                data = base64.b64decode(line)
                if data.startswith(b"\xef\xbb\xbf"): data = data[3:]
                value = json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=finite, object_pairs_hook=first)
                print(canonical(value))
            except Exception:
                print("error")
        """#

    private static let pieces: [[UInt8]] =
        [
            "{", "}", "[", "]", ",", ":", "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "\"a\":", "1", "-0",
            "0", "01", "1.5",
            "-", ".", "e5", "1e400", "1E-7", "12345678901234567890", "99999999999999999999999", "-9223372036854775808",
            "true",
            "false", "null", "nul", "NaN", "Infinity", " ", "\n", "\t", "\r\n", "\u{B}", "\\", "\\n", "\\u00e9",
            "\\uD834\\uDD1E",
            "\\ud800", "\\u12", "é", "漢", "😀", "\u{FEFF}", "\0", "'", "//", "/**/", ",]", ",}", "\"x\": [", "]}",
            "\u{7F}", "\u{2028}",
        ].map { Array($0.utf8) } + [[0xFF], [0xC3], [0xED, 0xA0, 0x80], [0xC0, 0xAF], [0xF4, 0x90, 0x80, 0x80]]

    @Test(arguments: 1...UInt64(rounds(4, few: 1)))
    func `random texts have the value that Python reads`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        var documents = (0..<3_000).map { _ in
            Array(
                (0..<Int.random(in: 1...9, using: &random)).map { _ in Self.pieces.randomElement(using: &random) ?? [] }
                    .joined())
        }
        documents += (0..<3_000).map { _ in Self.mutated(Self.document(depth: 4, using: &random), using: &random) }
        let path = "/tmp/an-json-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let lines = documents.map { Data($0).base64EncodedString() + "\n" }.joined()
        try Data(lines.utf8).write(to: URL(filePath: path))
        var command = Command("python3", "-c", Self.script)
        command.input = .file(path, flags: 0)
        let outcome = try await command.run()
        let answers = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
        try #require(answers.count == documents.count, "\(String(decoding: outcome.errors, as: UTF8.self))")
        let serializer = JSONResponseSerializer(options: .allowsFragments, emptyResponses: .never)
        let head = makeHead()
        var accepted = 0
        for (document, answer) in zip(documents, answers) {
            let found = (try? serializer.serialize(head, Data(document))).map(Self.canonical) ?? "error"
            if found != "error" { accepted += 1 }
            if found != answer {
                Issue.record("\(String(decoding: document, as: UTF8.self).debugDescription): \(found), not \(answer)")
            }
        }
        #expect(accepted > 500)
    }

    private static func document(depth: Int, using random: inout SeededGenerator) -> [UInt8] {
        let count = Int.random(in: 0...3, using: &random)
        switch depth > 0 ? Int.random(in: 0...2, using: &random) : 2 {
        case 0:
            let members = (0..<count).map { _ in
                Array("\"\("abé".randomElement(using: &random) ?? "a")\":".utf8)
                    + document(depth: depth - 1, using: &random)
            }
            return Array("{".utf8) + members.joined(separator: ",".utf8) + Array("}".utf8)
        case 1:
            let elements = (0..<count).map { _ in document(depth: depth - 1, using: &random) }
            return Array("[".utf8) + elements.joined(separator: ", ".utf8) + Array("]".utf8)
        default:
            let texts = [
                "1", "-0.5e3", "\"\"", "\"\\\"\\u00e9\"", "true", "null", "18446744073709551615", "\"😀\"", "1e-300",
            ]
            return Array((texts.randomElement(using: &random) ?? "0").utf8)
        }
    }

    /// Returns a document in which, in half of all cases, a piece replaces a byte.
    private static func mutated(_ document: [UInt8], using random: inout SeededGenerator) -> [UInt8] {
        guard Bool.random(using: &random), let position = document.indices.randomElement(using: &random) else {
            return document
        }
        return document[..<position] + (pieces.randomElement(using: &random) ?? []) + document[(position + 1)...]
    }

    private static func canonical(_ value: JSONValue) -> String {
        switch value {
        case .null: "None"
        case .bool(let bool): bool ? "True" : "False"
        case .integer(let integer): "\(integer)"
        case .unsigned(let integer): "\(integer)"
        case .double(let double):
            hexadecimal((0..<8).map { UInt8(truncatingIfNeeded: double.bitPattern >> (56 - 8 * $0)) })
        case .string(let string): "s" + hexadecimal(string.utf8)
        case .array(let elements): "[" + elements.map(canonical).joined(separator: ",") + "]"
        case .object(let members):
            "{"
                + members.map { (hexadecimal($0.key.utf8), $0.value) }.sorted { $0.0 < $1.0 }
                .map { "\($0.0):\(canonical($0.1))" }.joined(separator: ",") + "}"
        }
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
