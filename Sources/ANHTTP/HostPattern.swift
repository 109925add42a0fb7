// SPDX-License-Identifier: MIT

/// The hosts that a setting is for: one name or address, or, as `*.example.com`, every name below one, however deep.
///
/// A pattern holds for its host however the host is spelled, in the pattern or in a URL: names know no case, and a dot at
/// their end does not count; `[::1]` and `0:0:0:0:0:0:0:1` are the same address, and so are `127.1` and `127.0.0.1`. Names in
/// other scripts must be written in their ASCII form, `xn--…`.
public struct HostPattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    private let content: Content

    fileprivate enum Content: Hashable {
        case host(HostName)
        /// All names that end so.
        case namesBelow(String)
        /// A literal that is no pattern.
        case invalid(String)
    }

    /// Reads a pattern.
    ///
    /// - Throws: ``SecurityPolicy/Problem/hostPattern(_:)`` for what is neither a host nor `*.` and a name: URLs, ports, other
    ///   wildcards, and names in other scripts.
    public init(_ text: String) throws(SecurityPolicy.Problem) {
        guard let content = Content(text) else { throw .hostPattern(text) }
        self.content = content
    }

    /// Creates a pattern; with one that ``init(_:)`` refuses, all requests fail for which it could have decided.
    public init(stringLiteral text: String) {
        content = Content(text) ?? .invalid(text)
    }

    /// Throws for a literal that is no pattern, which covers no host.
    package func check() throws(SecurityPolicy.Problem) {
        if case .invalid(let text) = content { throw .hostPattern(text) }
    }

    /// Whether the pattern covers a host. Without a zone it covers an address in all zones.
    package func matches(_ host: HostName) -> Bool {
        switch content {
        case .host(let name): host.text == name.text && (name.zone == nil || name.zone == host.zone)
        case .namesBelow(let name): host.text.hasSuffix("." + name)
        case .invalid: false
        }
    }

    /// One host before many, then the longer name before the shorter.
    fileprivate var precision: (Int, Int) {
        switch content {
        case .host(let name): (1, name.zone == nil ? 0 : 1)
        case .namesBelow(let name): (0, name.utf8.count)
        case .invalid: (0, 0)
        }
    }

    /// The pattern in its usual form.
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

    /// Whether a text is labels of letters, digits, `-` and `_` between dots.
    private static func isName(_ text: String) -> Bool {
        text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
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

    /// Whether the usual form of an IPv4 address may end so.
    private static func isEndOfAddress(_ text: String) -> Bool {
        let labels = text.split(separator: ".")
        return labels.count < 4 && labels.allSatisfy { label in UInt8(label).map(String.init) == String(label) }
    }
}

extension Dictionary where Key == HostPattern {
    /// What the most precise pattern that covers the host stands for.
    package func value(for host: HostName) -> Value? {
        guard !isEmpty else { return nil }
        return filter { $0.key.matches(host) }.max { $0.key.precision < $1.key.precision }?.value
    }
}
