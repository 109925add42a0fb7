// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes

/// The value and parameters of a header field such as `multipart/mixed; boundary="a;b"` (RFC 9110 §5.6.6).
struct HeaderParameters {
    /// The text before the first semicolon, without surrounding whitespace.
    let value: String
    /// The parameters, with names in lower case and values without quotes; the first parameter with a name wins.
    private let parameters: [(name: String, value: String)]

    init(_ field: String) {
        var pieces = Self.split(field)[...]
        value = pieces.popFirst().map { Self.trimmed($0) } ?? ""
        parameters = pieces.compactMap { piece in
            guard let sign = piece.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            return (Self.trimmed(piece[..<sign]).lowercased(), Self.unquoted(piece[piece.index(after: sign)...]))
        }
    }

    subscript(name: String) -> String? {
        parameters.first { $0.name == name }?.value
    }

    /// Returns the pieces between semicolons outside of quotes.
    private static func split(_ field: String) -> [ArraySlice<UInt8>] {
        let bytes = Array(field.utf8)
        var pieces: [ArraySlice<UInt8>] = []
        var start = 0
        var isQuoted = false
        var isEscaped = false
        for (index, byte) in bytes.enumerated() {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ";"), !isQuoted {
                pieces.append(bytes[start..<index])
                start = index + 1
            }
        }
        pieces.append(bytes[start...])
        return pieces
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: trimmedBytes(bytes), as: UTF8.self)
    }

    private static func trimmedBytes(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = bytes.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        while rest.last == UInt8(ascii: " ") || rest.last == UInt8(ascii: "\t") { rest.removeLast() }
        return rest
    }

    /// Returns a token unchanged, or the content of a quoted string without escapes.
    private static func unquoted(_ bytes: ArraySlice<UInt8>) -> String {
        let bytes = trimmedBytes(bytes)
        guard bytes.first == UInt8(ascii: "\"") else { return String(decoding: bytes, as: UTF8.self) }
        var result: [UInt8] = []
        var isEscaped = false
        for byte in bytes.dropFirst() {
            if isEscaped {
                result.append(byte)
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "\"") {
                break
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension HTTPFields {
    /// The value and parameters of the first `Content-Type`; `nil` without that field.
    var contentTypeParameters: HeaderParameters? {
        first { $0.name == .contentType }.map { HeaderParameters($0.value) }
    }
}

extension ResponseHead {
    /// The charset parameter of the `Content-Type`, in lower case and without quotes; `nil` if absent or empty (RFC
    /// 9110 §8.3.2).
    package var charset: String? {
        guard let charset = headers.contentTypeParameters?["charset"]?.lowercased() else { return nil }
        // Some servers send single quotes, which have no special meaning in HTTP.
        let name = charset.hasPrefix("'") && charset.hasSuffix("'") ? String(charset.dropFirst().dropLast()) : charset
        return name.isEmpty ? nil : name
    }
}
