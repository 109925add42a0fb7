// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

extension HAR {
    /// Returns the places of an archive that contain one of the given secrets, such as `0.request.headers.3.value`, in
    /// order: for a test of the cassettes in a repository.
    ///
    /// A secret is also found percent-encoded, with `+` for spaces as in forms, with the escapes of JSON, and in Base64,
    /// with either alphabet, with or without padding, and as a part of a longer text, as in Basic credentials and JSON
    /// Web Tokens; and in up to three of these encodings, one in another.
    ///
    /// - Parameter secrets: The secrets; empty ones are ignored.
    /// - Throws: `EncodingError` for a duration that is not finite.
    public func places(of secrets: [String]) throws -> [String] {
        let secrets = secrets.filter { !$0.isEmpty }.map { Data($0.utf8) }
        var places: [String] = []
        for (index, entry) in entries.enumerated() {
            let value = try JSONDecoder().decode(JSONNode.self, from: HAR.line(entry))
            value.visitTexts("\(index)") { place, text in
                let isFound = Decodings.readings(of: text).contains { reading in
                    secrets.contains { reading.firstRange(of: $0) != nil }
                }
                if isFound { places.append(place) }
            }
        }
        return places
    }
}

/// The ways in which a text can be encoded. What is not encoded in a certain way stays as it is when it is decoded, so
/// that it can be tried with any text.
private enum Decodings {
    /// Returns the bytes of a text, and what they are after up to three decodings.
    static func readings(of text: String) -> Set<Data> {
        var all: Set<Data> = [Data(text.utf8)]
        var latest = all
        for _ in 0..<3 {
            latest = Set(latest.flatMap { [unescaped($0), unquoted($0), formDecoded($0), base64Decoded($0)] })
                .subtracting(all)
            all.formUnion(latest)
        }
        return all
    }

    /// Decodes the escapes of JSON (RFC 8259 §7).
    private static func unescaped(_ bytes: Data) -> Data {
        var result = Data()
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let kind = rest.popFirst() else {
                result.append(byte)
                continue
            }
            switch kind {
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "u"):
                var units: [UInt16] = []
                if let unit = unit(rest.prefix(4)) {
                    units.append(unit)
                    rest = rest.dropFirst(4)
                }
                // A character outside of the first plane has two.
                if rest.starts(with: "\\u".utf8), let low = unit(rest.dropFirst(2).prefix(4)),
                    UTF16.isTrailSurrogate(low)
                {
                    units.append(low)
                    rest = rest.dropFirst(6)
                }
                result += String(decoding: units, as: UTF16.self).utf8
            default: result.append(kind)
            }
        }
        return result
    }

    private static func unit(_ digits: Data) -> UInt16? {
        digits.count == 4 ? UInt16(String(decoding: digits, as: UTF8.self), radix: 16) : nil
    }

    /// Decodes percent-encoded bytes (RFC 3986 §2.1).
    private static func unquoted(_ bytes: Data) -> Data {
        var result = Data()
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            {
                result.append(value)
                rest = rest.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return result
    }

    /// Decodes a form, in which spaces are plus signs.
    private static func formDecoded(_ bytes: Data) -> Data {
        unquoted(Data(bytes.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }))
    }

    /// Decodes all runs of characters of Base64, in either alphabet (RFC 4648 §4, §5), with line breaks. What precedes
    /// the encoded text may be such characters, too, so that each run is decoded from its first four places.
    private static func base64Decoded(_ bytes: Data) -> Data {
        var result = Data()
        var run: [UInt8] = []
        for byte in bytes + [0] {
            if let digit = digit(byte) {
                run.append(digit)
            } else if byte != 0x0A, byte != 0x0D {
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
                run = []
            }
        }
        return result
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
