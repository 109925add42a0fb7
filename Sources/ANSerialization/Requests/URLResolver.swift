// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// A resolver that turns strings into absolute http and https URLs relative to a base URL. A session passes one with
/// its base URL and mode to ``RequestTarget/resolved(by:)``.
///
/// With the base `http://example.com/v1/` and ``Mode/reference`` (RFC 3986 §5):
///
/// | string | URL |
/// |---|---|
/// | `foo` | `http://example.com/v1/foo` |
/// | `/foo` | `http://example.com/foo`: a leading slash replaces the path of the base |
/// | `../x` | `http://example.com/x` |
/// | `?a=b` | `http://example.com/v1/?a=b` |
/// | `http://example2.com/` | unchanged |
/// | empty | the base |
///
/// If the path of the base does not end with a slash, one is added, so that its last component is kept. In strings,
/// characters that are invalid in URLs are percent-encoded, existing escapes are kept, and control characters are
/// rejected. International host names must be written in Punycode (`xn--…`).
public struct URLResolver: Hashable, Sendable {
    /// The base URL, with a slash at the end of its path; `nil` if all strings must be absolute URLs.
    package let base: URL?
    /// The interpretation of strings relative to the base.
    package let mode: Mode

    /// An interpretation of strings relative to a base URL; ``reference`` by default. Strings that begin with `http://`
    /// or `https://` are absolute URLs in every mode. `SessionConfiguration.baseURLMode` selects that of a session.
    public enum Mode: Hashable, Sendable {
        /// References according to RFC 3986 §5: a leading slash leads to the root of the host, and `//host/path` to
        /// another host.
        case reference
        /// Paths below the base: `/foo` and `//foo` equal `foo`, and a colon in the first segment has no special
        /// meaning. The segment `..` can nevertheless lead above the base.
        case appendingPath
    }

    /// The text of the base, if a path below can be resolved by concatenation; otherwise `nil`.
    private let prefix: String?

    /// Creates a resolver.
    ///
    /// - Parameters:
    ///   - base: The base URL; `nil` if all strings are absolute URLs.
    ///   - mode: The interpretation of strings; ``Mode/reference`` by default.
    package init(base: URL?, mode: Mode = .reference) {
        self.base = base.map(Self.withTrailingSlash)
        self.mode = mode
        prefix = self.base.flatMap(Self.prefix)
    }

    /// Returns the absolute URL for a string.
    ///
    /// - Parameter string: A path, reference or absolute URL; characters that are invalid in URLs are percent-encoded.
    ///   An empty string results in the base.
    /// - Throws: ``SerializationError/url(_:)`` if the string is not a valid URL, its scheme is neither `http` nor
    ///   `https`, its host is missing or not ASCII, or it is relative and there is no base.
    public func resolve(_ string: String) throws(SerializationError) -> URL {
        guard !string.isEmpty else {
            guard let base else { throw .url(.noBase(string)) }
            return try Self.checked(base.absoluteURL, from: base.absoluteString)
        }
        if let prefix, Self.isPlainPath(string), let url = URL(string: prefix + string) { return url }
        let hasAuthority = Self.isAbsolute(string) || mode == .reference && string.hasPrefix("//")
        guard let encoded = string.encodedForURL(hasAuthority: hasAuthority) else {
            throw .url(.malformed(string, reason: "it contains a control character"))
        }
        let reference = mode == .appendingPath && !Self.isAbsolute(encoded) ? Self.below(encoded) : encoded
        guard
            URL(string: reference, encodingInvalidCharacters: false) != nil,
            let url = URL(string: reference, relativeTo: base)?.absoluteURL
        else {
            throw .url(.malformed(string, reason: "it does not follow RFC 3986"))
        }
        return try Self.checked(url.withoutDotSegments, from: string)
    }

    /// Returns the base with a slash at the end of its path; a base without a path is unchanged.
    private static func withTrailingSlash(_ base: URL) -> URL {
        guard
            var components = URLComponents(url: base, resolvingAgainstBaseURL: true),
            !components.percentEncodedPath.isEmpty, !components.percentEncodedPath.hasSuffix("/")
        else { return base }
        components.percentEncodedPath += "/"
        return components.url ?? base
    }

    /// Returns the text of a base that ends with a path without dot segments; `nil` for any other base.
    private static func prefix(_ base: URL) -> String? {
        let text = base.absoluteString
        guard text.hasSuffix("/"), !text.mayHaveDotSegments, !text.contains(where: { $0 == "?" || $0 == "#" }),
            (try? checked(base, from: text)) != nil
        else { return nil }
        return text
    }

    /// Returns whether a string is a path below the base, possibly with a query, without characters to encode or dot
    /// segments.
    private static func isPlainPath(_ string: String) -> Bool {
        var previous = UInt8(ascii: "/")
        for byte in string.utf8 {
            guard String.isPlainInURL(byte), byte != UInt8(ascii: ":") else { return false }
            if previous == UInt8(ascii: "/"), byte == UInt8(ascii: ".") { return false }
            previous = byte
        }
        return string.utf8.first != UInt8(ascii: "/")
    }

    private static func isAbsolute(_ string: String) -> Bool {
        let start = string.prefix(8).lowercased()
        return start.hasPrefix("http://") || start.hasPrefix("https://")
    }

    /// Returns a reference for a path below the base, even if the path begins with slashes.
    private static func below(_ path: String) -> String {
        path.hasPrefix("?") || path.hasPrefix("#") ? path : "./" + String(path.unicodeScalars.drop { $0 == "/" })
    }

    static func checked(_ url: URL, from string: String) throws(SerializationError) -> URL {
        guard let scheme = url.scheme?.lowercased() else { throw .url(.noBase(string)) }
        guard scheme == "http" || scheme == "https" else { throw .url(.scheme(scheme, url: string)) }
        guard let host = url.host(percentEncoded: true), !host.isEmpty else { throw .url(.noHost(string)) }
        guard !host.contains("%") || host.contains(":") else {
            throw .url(.malformed(string, reason: "its host is not ASCII; write international names in Punycode"))
        }
        return url
    }
}

/// The target of a request: a path or URL as a string, or a `URL`.
///
/// Other types can conform, for example an enumeration of the endpoints of a service:
///
/// ```swift
/// enum Endpoint: RequestTarget {
///     case user(Int)
///
///     func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
///         switch self {
///         case .user(let id): try resolver.resolve("users/\(id)")
///         }
///     }
/// }
/// ```
public protocol RequestTarget {
    /// Returns the absolute `http` or `https` URL of the target.
    ///
    /// A session calls it in the task that creates the request, once for each request.
    ///
    /// - Parameter resolver: Resolves strings against the base URL of the session.
    /// - Throws: ``SerializationError/url(_:)`` if the target has no absolute `http` or `https` URL. It reaches the
    ///   caller of a session as `SessionError.serialization`.
    func resolved(by resolver: URLResolver) throws(SerializationError) -> URL
}

extension String: RequestTarget {
    /// Returns the URL that the string denotes relative to the base URL of the session; see ``URLResolver`` for the
    /// rules.
    ///
    /// - Parameter resolver: The resolver with the base URL.
    /// - Throws: ``SerializationError/url(_:)`` if the string is not a valid URL, its scheme is neither `http` nor
    ///   `https`, its host is missing or not ASCII, or it is relative and there is no base.
    public func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
        try resolver.resolve(self)
    }
}

extension URL: RequestTarget {
    /// Returns an absolute URL unchanged, and a relative one whose own base is absolute resolved against that base;
    /// resolves any other relative one by the resolver, like the string of its relative part.
    ///
    /// - Parameter resolver: The resolver for a relative URL without an absolute base of its own.
    /// - Throws: ``SerializationError/url(_:)`` unless the scheme is `http` or `https` and there is a host in ASCII,
    ///   and for a relative URL without any base.
    public func resolved(by resolver: URLResolver) throws(SerializationError) -> URL {
        guard scheme != nil else { return try resolver.resolve(relativeString) }
        return try URLResolver.checked(absoluteURL, from: absoluteString)
    }
}
