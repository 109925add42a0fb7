// SPDX-License-Identifier: MIT

/// A pattern for the hosts that a setting applies to: a name, an address, or `*.example.com` for all names below
/// `example.com` at any depth, but not for `example.com` itself.
///
/// A pattern matches all spellings of its host: names are compared without case and trailing dot, `[::1]` equals
/// `0:0:0:0:0:0:0:1`, and `127.1` equals `127.0.0.1`. Schemes and ports are not compared. An IPv6 address without a
/// zone matches in every zone. Patterns in different spellings of the same host are equal. Internationalized names must
/// be written in their ASCII form, `xn--…`.
public struct HostPattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    private let content: Content

    fileprivate enum Content: Hashable {
        case host(HostName)
        /// All names with this parent domain.
        case namesBelow(String)
        /// A literal that is not a valid pattern.
        case invalid(String)
    }

    /// Creates a pattern from text, such as `example.com`, `*.example.com` or `10.0.0.1`.
    ///
    /// - Parameter text: A name, an IPv4 or IPv6 address, or `*.` followed by a name or by up to three last numbers of
    ///   an IPv4 address. The labels of a name consist of ASCII letters, digits, `-` and `_`. An IPv6 address may have
    ///   brackets.
    /// - Throws: ``SecurityPolicy/ConfigurationError`` if the text is anything else, such as a URL, a host with a port,
    ///   another wildcard, a name that is not in ASCII, or an empty text.
    public init(_ text: String) throws(SecurityPolicy.ConfigurationError) {
        guard let content = Content(text) else { throw .hostPattern(text) }
        self.content = content
    }

    /// Creates a pattern from a literal, which has the form that ``init(_:)`` accepts.
    ///
    /// An invalid literal is not an error here. Instead, requests that consult the pattern fail: in ``TLSOptions``, all
    /// requests over https, with ``TransportError/TLSFailure/badSecurityPolicy(_:)``; in ``AWSSignature/hosts``, those
    /// that no earlier pattern matches, with ``TransportError/Reason/invalidRequest(_:)``.
    public init(stringLiteral text: String) {
        content = Content(text) ?? .invalid(text)
    }

    /// Throws if the pattern comes from an invalid literal; such a pattern matches no host.
    package func check() throws(SecurityPolicy.ConfigurationError) {
        if case .invalid(let text) = content { throw .hostPattern(text) }
    }

    /// Returns whether the pattern matches a host. An address without zone matches in all zones.
    package func matches(_ host: HostName) -> Bool {
        switch content {
        case .host(let name): host.text == name.text && (name.zone == nil || name.zone == host.zone)
        case .namesBelow(let name): host.text.hasSuffix("." + name)
        case .invalid: false
        }
    }

    /// The rank among matching patterns: a single host precedes a wildcard, and a longer name a shorter one.
    fileprivate var precision: (Int, Int) {
        switch content {
        case .host(let name): (1, name.zone == nil ? 0 : 1)
        case .namesBelow(let name): (0, name.utf8.count)
        case .invalid: (0, 0)
        }
    }

    /// The pattern in its canonical form: in lower case, without a trailing dot, and with normalized addresses without
    /// brackets; the text itself if it comes from an invalid literal.
    public var description: String {
        switch content {
        case .host(let name): name.zonedText
        case .namesBelow(let name): "*." + name
        case .invalid(let text): text
        }
    }
}

extension HostPattern.Content {
    fileprivate init?(_ text: String) {
        guard text.hasPrefix("*.") else {
            let name = HostName(text)
            guard name.isAddress ? name.isUsualAddress : Self.isName(name.text) else { return nil }
            self = .host(name)
            return
        }
        var name = text.dropFirst(2).lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        guard Self.isName(name), !HostName(name).isAddress || Self.isEndOfAddress(name) else { return nil }
        self = .namesBelow(name)
    }

    /// Returns whether a text consists of dot-separated labels of letters, digits, `-` and `_`.
    private static func isName(_ text: String) -> Bool {
        text.split(at: ".", omittingEmptySubsequences: false).allSatisfy { label in
            !label.isEmpty
                && label.utf8.allSatisfy { byte in
                    switch byte {
                    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                        UInt8(ascii: "-"), UInt8(ascii: "_"):
                        true
                    default: false
                    }
                }
        }
    }

    /// Returns whether a dotted-decimal IPv4 address may end with the text.
    private static func isEndOfAddress(_ text: String) -> Bool {
        let labels = text.split(at: ".")
        return labels.count < 4 && labels.allSatisfy { label in UInt8(label).map(String.init) == String(label) }
    }
}

extension Dictionary where Key == HostPattern {
    /// Returns the value of the most specific pattern that matches a host; `nil` if no pattern matches.
    package func value(for host: HostName) -> Value? {
        guard !isEmpty else { return nil }
        return filter { $0.key.matches(host) }.max { $0.key.precision < $1.key.precision }?.value
    }
}
