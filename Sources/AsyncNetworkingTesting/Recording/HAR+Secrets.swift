// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension HAR {
    /// Returns the places of an archive that contain one of the given secrets, such as `0.request.headers.3.value`, in
    /// order: for a test of the cassettes in a repository.
    ///
    /// A secret is also found percent-encoded, with `+` for spaces as in forms, with the escapes of JSON, and in Base64,
    /// with either alphabet, with or without padding, and as a part of a longer text, as in Basic credentials and JSON
    /// Web Tokens; and in up to three of these encodings, one in another, but in one only if a body is not text. A body
    /// that is compressed with gzip or deflate is decompressed; one in another content coding, which is recorded only
    /// if nothing is hidden, is not searched.
    ///
    /// - Parameter secrets: The secrets; empty ones are ignored.
    /// - Throws: `EncodingError` for a duration that is not finite.
    public func places(of secrets: [String]) throws -> [String] {
        let search = SecretSearch(secrets)
        var places: [String] = []
        for (index, entry) in entries.enumerated() {
            let value = try JSONDecoder().decode(JSONNode.self, from: HAR.line(entry))
            // Their encoding is that of the archive.
            var bodies: [String: Data] = [:]
            if let post = entry.request.postData, post.encoding == "base64" {
                bodies["\(index).request.postData.text"] = HAR.content(post.text, entry.request.headers)
            }
            if let text = entry.response.content.text, entry.response.content.encoding == "base64" {
                bodies["\(index).response.content.text"] = HAR.content(text, entry.response.headers)
            }
            value.visitTexts("\(index)") { place, text in
                let isFound =
                    if let body = bodies[place] {
                        search.finds(in: [UInt8](text.utf8), decodings: 0) || search.finds(in: body)
                    } else {
                        search.finds(in: [UInt8](text.utf8), decodings: SecretSearch.decodings)
                    }
                if isFound { places.append(place) }
            }
        }
        return places
    }
}

extension HAR {
    /// Returns the bytes of a body in Base64, without the content coding that its fields name.
    private static func content(_ text: String, _ headers: [Pair]) -> Data? {
        guard let bytes = Data(wrappedBase64: text) else { return nil }
        let codings = headers.fields.contentCodings
        guard codings.count == 1, let content = content([UInt8](bytes), coding: codings[0]) else { return bytes }
        return Data(content.bytes)
    }
}

/// A search for secrets in texts and in what they encode.
///
/// What is not encoded in a certain way stays as it is when it is decoded, so that each decoding can be tried with any
/// text.
private struct SecretSearch {
    /// The number of encodings, one in another.
    static let decodings = 3

    private let secrets: [[UInt8]]
    /// Whether a secret begins with a byte.
    private var begins = Array(repeating: false, count: 256)
    /// The number of digits of Base64 for the shortest secret, whose encodings are not shorter.
    private let shortestRun: Int

    init(_ secrets: [String]) {
        self.secrets = secrets.filter { !$0.isEmpty }.map { Array($0.utf8) }
        shortestRun = ((self.secrets.map(\.count).min() ?? 0) * 4 + 2) / 3
        for secret in self.secrets { begins[Int(secret[0])] = true }
    }

    /// Returns whether there is a secret in a body. One that is not text may be large, and is rarely encoded.
    func finds(in body: Data) -> Bool {
        let isText = String(validating: body, as: UTF8.self) != nil
        return finds(in: [UInt8](body), decodings: isText ? Self.decodings : 1)
    }

    /// Returns whether there is a secret in a text, or in what it is after up to a number of decodings.
    func finds(in bytes: [UInt8], decodings: Int) -> Bool {
        if contains(bytes) { return true }
        guard decodings > 0 else { return false }
        return [Self.unescaped, Self.unquoted, Self.formDecoded, base64Decoded].contains { decode in
            decode(bytes).map { finds(in: $0, decodings: decodings - 1) } ?? false
        }
    }

    private func contains(_ bytes: [UInt8]) -> Bool {
        for index in bytes.indices where begins[Int(bytes[index])] {
            if secrets.contains(where: { bytes[index...].starts(with: $0) }) { return true }
        }
        return false
    }

    // MARK: Decoding

    /// Decodes the escapes of JSON (RFC 8259 §7); `nil` if there are none.
    private static func unescaped(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.contains(UInt8(ascii: "\\")) else { return nil }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count else {
                result.append(bytes[index])
                index += 1
                continue
            }
            let kind = bytes[index + 1]
            index += 2
            switch kind {
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "u"):
                var units: [UInt16] = []
                if let unit = number(bytes, from: index, digits: 4) {
                    units.append(unit)
                    index += 4
                }
                // A character outside of the first plane has two.
                if bytes.dropFirst(index).starts(with: "\\u".utf8),
                    let low = number(bytes, from: index + 2, digits: 4), UTF16.isTrailSurrogate(low)
                {
                    units.append(low)
                    index += 6
                }
                result += String(decoding: units, as: UTF16.self).utf8
            default: result.append(kind)
            }
        }
        return result
    }

    /// Decodes percent-encoded bytes (RFC 3986 §2.1); `nil` if there are none.
    private static func unquoted(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.contains(UInt8(ascii: "%")) else { return nil }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), let value = number(bytes, from: index + 1, digits: 2) {
                result.append(UInt8(truncatingIfNeeded: value))
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// Decodes a form, in which spaces are plus signs; `nil` if there are none.
    private static func formDecoded(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.contains(UInt8(ascii: "+")) else { return nil }
        let spaced = bytes.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        return unquoted(spaced) ?? spaced
    }

    /// Returns the hexadecimal number with a number of digits at an index; `nil` if there is none.
    private static func number(_ bytes: [UInt8], from start: Int, digits: Int) -> UInt16? {
        guard start + digits <= bytes.count else { return nil }
        var value: UInt16 = 0
        for byte in bytes[start..<start + digits] {
            guard let digit = Character(UnicodeScalar(byte)).hexDigitValue else { return nil }
            value = value << 4 | UInt16(digit)
        }
        return value
    }

    /// Decodes the runs of characters of Base64 that are as long as a secret, in either alphabet (RFC 4648 §4, §5), with
    /// line breaks; `nil` if there are none. What precedes the encoded text may be such characters, too, so that each run
    /// is decoded from its first four places.
    private func base64Decoded(_ bytes: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var run: [UInt8] = []
        func decodeRun() {
            defer { run = [] }
            guard run.count >= shortestRun else { return }
            for start in 0..<min(4, run.count) {
                var (bits, count) = (UInt32(0), 0)
                for digit in run[start...] {
                    (bits, count) = (bits << 6 | UInt32(digit), count + 6)
                    guard count >= 8 else { continue }
                    count -= 8
                    result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
                }
                result.append(0)
            }
        }
        for byte in bytes {
            if let digit = Self.digit(byte) {
                run.append(digit)
            } else if byte != 0x0A, byte != 0x0D {
                decodeRun()
            }
        }
        decodeRun()
        return result.isEmpty ? nil : result
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
