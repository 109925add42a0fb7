// SPDX-License-Identifier: MIT

package import FoundationEssentials
package import HTTPTypes

extension URL {
    /// Creates the absolute URL of a reference (RFC 3986 §5); `nil` if it is malformed or contains a control character.
    ///
    /// Existing escapes are kept, and characters that are invalid in URLs are percent-encoded. An empty reference is the
    /// base without its fragment. Dot segments are removed, also those of an absolute URL.
    ///
    /// - Parameters:
    ///   - reference: A reference, as in `Location`.
    ///   - base: The URL of the document that contains the reference.
    package init?(reference: String, relativeTo base: URL) {
        let reference = reference.trimmingBlanks
        guard let text = reference.encodedForURL(hasAuthority: reference.hasAuthority) else { return nil }
        guard !text.isEmpty else {
            guard var components = URLComponents(url: base, resolvingAgainstBaseURL: true) else { return nil }
            components.fragment = nil
            guard let url = components.url else { return nil }
            self = url
            return
        }
        guard URL(string: text, encodingInvalidCharacters: false) != nil,
            let url = URL(string: text, relativeTo: base)?.absoluteURL
        else { return nil }
        self = url.withoutDotSegments
    }

    /// The URL with a path without dot segments, as it is sent. Foundation removes them only from relative references.
    package var withoutDotSegments: URL {
        guard absoluteString.mayHaveDotSegments,
            var components = URLComponents(url: self, resolvingAgainstBaseURL: true),
            components.percentEncodedPath.hasDotSegments
        else { return self }
        components.percentEncodedPath = components.percentEncodedPath.withoutDotSegments
        return components.url ?? self
    }
}

extension String {
    /// The path, which begins with a slash, without the segments `.` and `..` (RFC 3986 §5.2.4). Their dots may be
    /// percent-encoded, as for browsers and libcurl since 8.13; it makes no difference to a server that decodes them.
    package var withoutDotSegments: String {
        let segments = split(at: "/", omittingEmptySubsequences: false).dropFirst()
        var kept: [Substring] = []
        for segment in segments {
            switch DotSegment(segment) {
            case .current: break
            case .parent: _ = kept.popLast()
            case nil: kept.append(segment)
            }
        }
        // A dot segment at the end leaves a slash.
        if segments.last.flatMap(DotSegment.init) != nil { kept.append("") }
        return "/" + kept.joined(separator: "/")
    }

    /// Whether the path has a segment `.` or `..`, the dots of which may be percent-encoded.
    package var hasDotSegments: Bool {
        mayHaveDotSegments && split(at: "/").contains { DotSegment($0) != nil }
    }

    /// Whether a slash is followed by a dot, which may be percent-encoded.
    package var mayHaveDotSegments: Bool {
        let bytes = utf8.span
        for slash in bytes.indices.dropLast() where bytes[slash] == UInt8(ascii: "/") {
            switch bytes[slash + 1] {
            case UInt8(ascii: "."): return true
            case UInt8(ascii: "%") where slash + 3 < bytes.count:
                if bytes[slash + 2] == UInt8(ascii: "2"), bytes[slash + 3] | 0x20 == UInt8(ascii: "e") { return true }
            default: break
            }
        }
        return false
    }
}

/// A segment of a path that denotes another segment.
private enum DotSegment {
    /// `.`
    case current
    /// `..`
    case parent

    init?(_ segment: Substring) {
        guard segment.utf8.count <= 6 else { return nil }
        switch segment.lowercased().replacing(each: "%2e", with: ".") {
        case ".": self = .current
        case "..": self = .parent
        default: return nil
        }
    }
}

extension String {
    /// Creates a string with one character for each byte.
    package init(byteText bytes: some Sequence<UInt8>) {
        self = bytes.reduce(into: "") { $0.unicodeScalars.append(UnicodeScalar($1)) }
    }
}

extension HTTPField {
    /// The value as a reference. If it is not UTF-8, the bytes above 0x7F are percent-encoded, as browsers do.
    package var reference: String {
        guard value.unicodeScalars.contains("\u{FFFD}") else { return value }
        let bytes = valueBytes
        // The field may contain U+FFFD itself.
        guard Swift.String(validating: bytes, as: UTF8.self) == nil else { return value }
        return bytes.reduce(into: "") { result, byte in
            if byte < 0x80 {
                result.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                result += "%" + Swift.String(byte, radix: 16, uppercase: true)
            }
        }
    }

    /// The bytes of the value, which may be no UTF-8.
    package var valueBytes: [UInt8] {
        // The coded form is the safe way to the bytes: a string with one character of Latin-1 for each.
        guard value.unicodeScalars.contains("\u{FFFD}"), let coded = try? JSONEncoder().encode(self),
            let text = try? JSONDecoder().decode(CodedValue.self, from: coded).value
        else { return Array(value.utf8) }
        return text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }

    /// The value with one character for each byte, by which values that are no UTF-8 differ, too.
    package var byteText: Swift.String { Swift.String(byteText: valueBytes) }

    private struct CodedValue: Decodable {
        let value: String
    }
}

extension String {
    /// Returns the text with those bytes percent-encoded that RFC 3986 does not permit in a reference; `nil` if it
    /// contains a control character.
    ///
    /// - Parameter hasAuthority: Whether the text names a host.
    package func encodedForURL(hasAuthority: Bool) -> String? {
        guard !utf8.allSatisfy(Self.isPlainInURL) else { return self }
        var result = ""
        // Brackets enclose IPv6 addresses in the authority, which ends at the first of these characters.
        var isInAuthority = hasAuthority
        var isInFragment = false
        var slashes = 0
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 0..<0x20, 0x7F:
                return nil
            case UInt8(ascii: "%") where !(rest.count >= 2 && rest.prefix(2).allSatisfy(Self.isHexDigit)):
                result += "%25"
            case UInt8(ascii: "#") where isInFragment:
                result += "%23"
            case UInt8(ascii: "[") where !isInAuthority, UInt8(ascii: "]") where !isInAuthority,
                0x80..., UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"),
                UInt8(ascii: "}"):
                result += "%" + Swift.String(byte, radix: 16, uppercase: true)
            default:
                if byte == UInt8(ascii: "/") { slashes += 1 }
                if slashes > 2 || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { isInAuthority = false }
                if byte == UInt8(ascii: "#") { isInFragment = true }
                result.unicodeScalars.append(UnicodeScalar(byte))
            }
        }
        return result
    }

    /// Whether the reference names a host: it begins with `//`, or a scheme and `://`.
    package var hasAuthority: Bool {
        let scheme = utf8.prefix { byte in
            (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "+")
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
        }
        let rest = utf8.dropFirst(scheme.count)
        return scheme.isEmpty ? rest.starts(with: "//".utf8) : rest.starts(with: "://".utf8)
    }

    /// Returns whether a byte is never percent-encoded in a URL.
    package static func isPlainInURL(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "-")...UInt8(ascii: ":"), UInt8(ascii: "_"), UInt8(ascii: "?"), UInt8(ascii: "="),
            UInt8(ascii: "&"):
            true
        default: false
        }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "a")...UInt8(ascii: "f"):
            true
        default: false
        }
    }
}

extension URL {
    /// Whether the scheme is `http`, compared case-insensitively (RFC 3986 §3.1).
    package var isPlainHTTP: Bool { begins(with: "http") }

    /// Whether the scheme is `https`, compared case-insensitively (RFC 3986 §3.1).
    package var isHTTPS: Bool { begins(with: "https") }

    /// Compares the text of the URL, because `scheme` makes a copy of the scheme.
    private func begins(with scheme: String) -> Bool {
        let (text, letters) = (absoluteString, scheme)
        let (bytes, start) = (text.utf8Span.span, letters.utf8Span.span)
        guard bytes.count > start.count, bytes[start.count] == UInt8(ascii: ":") else { return false }
        // The bit distinguishes lowercase letters from uppercase ones, and no other character from a letter.
        for index in start.indices where bytes[index] | 0x20 != start[index] { return false }
        return true
    }
}

extension URL {
    /// The URL as text for messages, without possible secrets.
    ///
    /// User information, the values of the query, those without a name, parameters of the path with a secret name, such as
    /// `;jsessionid=…`, and the fragment are removed; OAuth 2.0 puts tokens into fragments (RFC 6749 §4.2.2). For a URL without a host, such as a mistyped `https:user:password@host`, only the scheme remains.
    package var redactedDescription: String {
        guard var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return "(invalid URL)" }
        guard let host = components.host, !host.isEmpty else { return components.scheme.map { "\($0):…" } ?? "…" }
        components.user = nil
        components.password = nil
        components.fragment = nil
        let path = components.percentEncodedPath
        if path.utf8.contains(UInt8(ascii: ";")) {
            components.percentEncodedPath = Redaction.standard.path(path).replacing(each: "…", with: "%E2%80%A6")
        }
        if let query = components.percentEncodedQuery {
            components.percentEncodedQuery = Self.redactedQuery(query).replacing(each: "…", with: "%E2%80%A6")
        }
        return (components.string ?? "(invalid URL)").replacing(each: "%E2%80%A6", with: "…")
    }

    /// Returns the query of a URL or a form for messages, without its values and those without a name.
    package static func redactedQuery(_ query: String) -> String {
        query.split(at: "&", omittingEmptySubsequences: false)
            .map { pair in
                pair.isEmpty ? "" : (pair.unicodeScalars.firstIndex(of: "=").map { pair[...$0] } ?? "") + "…"
            }
            .joined(separator: "&")
    }
}

extension URL {
    /// The host as libcurl sends it: a name as it is spelled, but not percent-encoded; an address in its canonical form,
    /// in brackets if it contains colons (RFC 3986 §3.2.2), and without a zone, which has no meaning for the server (RFC 6874
    /// §1). Empty without a host.
    package var hostOfAuthority: String {
        let host = host(percentEncoded: false) ?? ""
        let name = HostName(host)
        guard name.isAddress, !host.hasSuffix(".") else { return host }
        return name.text.contains(":") ? "[\(name.text)]" : name.text
    }

    /// The value of `Host` for a request that libcurl does not write, or whose signature covers it; see ``authority``.
    ///
    /// - Throws: ``TransportError`` for an international name that is not in its ASCII form, to which libcurl converts it
    ///   where it resolves and verifies it.
    package func checkedAuthority() throws(TransportError) -> String {
        guard hostOfAuthority.utf8.allSatisfy({ $0 < 0x80 }) else {
            let reason = "“\(hostOfAuthority)” is not ASCII; here, international names must be written in Punycode."
            throw TransportError(.invalidRequest(.option(reason)))
        }
        return authority
    }

    /// The value of `Host`: the host, with the port unless it is the scheme's default (RFC 9110 §7.2).
    package var authority: String {
        port.flatMap { $0 == (isHTTPS ? 443 : 80) ? nil : "\(hostOfAuthority):\($0)" } ?? hostOfAuthority
    }
}

extension String {
    /// The text of a message without the user information of URLs in it, also malformed ones: what stands between `//` and
    /// the last `@` before the next blank, or between the first quotation mark and the last `@` before the last one, where a
    /// URL may be quoted that has no `//`, or blanks.
    package var withoutUserInformation: String {
        var result = ""
        var rest = unicodeScalars[...]
        if let end = rest.lastIndex(where: { $0 == "'" }),
            let sign = rest[..<end].lastIndex(where: { $0 == "@" }),
            let quote = unicodeScalars.firstRange(of: " '".unicodeScalars)?.upperBound, quote < sign
        {
            result = String(rest[..<quote]).withoutUserInformation + "…"
            rest = rest[sign...]
        }
        while let slashes = rest.firstRange(of: "//".unicodeScalars) {
            let word = rest[slashes.upperBound...].prefix { !$0.properties.isWhitespace }
            if let sign = word.lastIndex(where: { $0 == "@" }) {
                result += String(rest[..<slashes.upperBound]) + "…"
                rest = rest[sign...]
            } else {
                // Nor has the rest of the word user information, however many slashes it has.
                result += String(rest[..<word.endIndex])
                rest = rest[word.endIndex...]
            }
        }
        return result + String(rest)
    }
}
