// SPDX-License-Identifier: MIT

/// The hosts that a setting is for: one name or address, or, as `*.example.com`, every name below one, however deep.
///
/// Names know no case. Those in other scripts are written in their ASCII form, `xn--…`.
public struct HostPattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    private let name: String
    private let coversNamesBelow: Bool

    /// Creates a pattern.
    public init(_ text: String) {
        coversNamesBelow = text.hasPrefix("*.")
        name = (coversNamesBelow ? String(text.dropFirst(2)) : text).lowercased()
    }

    /// Creates a pattern.
    public init(stringLiteral text: String) {
        self.init(text)
    }

    /// Whether the pattern covers a host, which is in lower case and has no dot at its end.
    package func matches(_ host: String) -> Bool {
        coversNamesBelow ? host.hasSuffix("." + name) : host == name
    }

    /// One host before many, then the longer name before the shorter.
    fileprivate var precision: Int { coversNamesBelow ? name.utf8.count : .max }

    /// The pattern as it is read.
    public var description: String { (coversNamesBelow ? "*." : "") + name }
}

extension Dictionary where Key == HostPattern {
    /// What the most precise pattern that covers the host stands for.
    package func value(for host: String) -> Value? {
        guard !isEmpty else { return nil }
        return filter { $0.key.matches(host) }.max { $0.key.precision < $1.key.precision }?.value
    }
}
