// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Makes absolute http and https URLs from what callers write, against a base.
///
/// With the base `http://example.com/v1/` and ``Mode/reference``, which is RFC 3986 §5:
///
/// | string | URL |
/// |---|---|
/// | `foo` | `http://example.com/v1/foo` |
/// | `/foo` | `http://example.com/foo`: a leading slash leaves the base's path |
/// | `../x` | `http://example.com/x` |
/// | `?a=b` | `http://example.com/v1/?a=b` |
/// | `http://example2.com/` | itself |
/// | empty | the base |
///
/// A path of the base gets a slash at its end if it has none, so that nothing of it is lost. In strings, characters that
/// a URL cannot have are percent-encoded, escapes that are there are kept, and control characters are refused.
public struct URLResolver: Hashable, Sendable {
    /// The base, with a slash at the end of its path.
    public let base: URL?
    /// How strings relate to the base.
    public let mode: Mode

    /// How strings relate to a base.
    public enum Mode: Hashable, Sendable {
        /// As references of RFC 3986: a leading slash starts from the host's root.
        case reference
        /// As paths below the base: `/foo` is `foo`, and a colon in the first segment means nothing.
        case appendingPath
    }

    /// The base as text, where a path below it is resolved by writing it behind.
    private let prefix: String?

    /// Creates a resolver; without a base all strings must be absolute URLs.
    public init(base: URL?, mode: Mode = .reference) {
        self.base = base.map(Self.withTrailingSlash)
        self.mode = mode
        prefix = self.base.flatMap(Self.prefix)
    }

    /// The absolute URL that the string means.
    ///
    /// - Throws: ``SerializationError/url(_:)``.
    public func resolve(_ string: String) throws(SerializationError) -> URL {
        guard !string.isEmpty else {
            guard let base else { throw .url(.noBase(string)) }
            return try Self.checked(base.absoluteURL, from: base.absoluteString)
        }
        if let prefix, Self.isPlainPath(string), let url = URL(string: prefix + string) { return url }
        let encoded = try Self.encoded(string)
        let reference = mode == .appendingPath && !Self.isAbsolute(encoded) ? Self.below(encoded) : encoded
        guard
            URL(string: reference, encodingInvalidCharacters: false) != nil,
            let url = URL(string: reference, relativeTo: base)?.absoluteURL
        else {
            throw .url(.malformed(string, reason: "it does not follow RFC 3986"))
        }
        return try Self.checked(url, from: string)
    }

    /// The base with a slash at the end of its path, before query and fragment; a base without a path stays as it is.
    private static func withTrailingSlash(_ base: URL) -> URL {
        guard
            var components = URLComponents(url: base, resolvingAgainstBaseURL: true),
            !components.percentEncodedPath.isEmpty, !components.percentEncodedPath.hasSuffix("/")
        else { return base }
        components.percentEncodedPath += "/"
        return components.url ?? base
    }

    /// The text of a base that ends in a path without dots to remove.
    private static func prefix(_ base: URL) -> String? {
        let text = base.absoluteString
        guard text.hasSuffix("/"), !text.contains("/."), !text.contains(where: { $0 == "?" || $0 == "#" }),
            (try? checked(base, from: text)) != nil
        else { return nil }
        return text
    }

    /// Whether a string is a path below the base, with or without a query, that has nothing to encode and no dots to remove.
    private static func isPlainPath(_ string: String) -> Bool {
        var previous = UInt8(ascii: "/")
        for byte in string.utf8 {
            guard isPlain(byte), byte != UInt8(ascii: ":") else { return false }
            if previous == UInt8(ascii: "/"), byte == UInt8(ascii: ".") { return false }
            previous = byte
        }
        return string.utf8.first != UInt8(ascii: "/")
    }

    /// The string with the bytes percent-encoded that RFC 3986 has no place for.
    private static func encoded(_ string: String) throws(SerializationError) -> String {
        guard !string.utf8.allSatisfy(isPlain) else { return string }
        var result = ""
        // Brackets are for the addresses of IPv6 in the authority, which ends at the first of these.
        var isInAuthority = isAbsolute(string) || string.hasPrefix("//")
        var slashes = 0
        var rest = string.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case 0..<0x20, 0x7F:
                throw .url(.malformed(string, reason: "it has a control character"))
            case UInt8(ascii: "%") where !(rest.count >= 2 && rest.prefix(2).allSatisfy(isHexDigit)):
                result += "%25"
            case UInt8(ascii: "[") where !isInAuthority, UInt8(ascii: "]") where !isInAuthority,
                0x80..., UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"),
                UInt8(ascii: "}"):
                result += "%" + String(byte, radix: 16, uppercase: true)
            default:
                if byte == UInt8(ascii: "/") { slashes += 1 }
                if slashes > 2 || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { isInAuthority = false }
                result.unicodeScalars.append(UnicodeScalar(byte))
            }
        }
        return result
    }

    /// Whether a byte stays as it is wherever it stands.
    private static func isPlain(_ byte: UInt8) -> Bool {
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

    private static func isAbsolute(_ string: String) -> Bool {
        let start = string.prefix(8).lowercased()
        return start.hasPrefix("http://") || start.hasPrefix("https://")
    }

    /// A reference to a path below the base, whatever the path begins with.
    private static func below(_ path: String) -> String {
        path.hasPrefix("?") || path.hasPrefix("#") ? path : "./" + path.drop { $0 == "/" }
    }

    private static func checked(_ url: URL, from string: String) throws(SerializationError) -> URL {
        guard let scheme = url.scheme?.lowercased() else { throw .url(.noBase(string)) }
        guard scheme == "http" || scheme == "https" else { throw .url(.scheme(scheme, url: string)) }
        guard let host = url.host(percentEncoded: true), !host.isEmpty else { throw .url(.noHost(string)) }
        guard !host.contains("%") || host.contains(":") else {
            throw .url(.malformed(string, reason: "its host is not ASCII; write international names in Punycode"))
        }
        return url
    }
}
