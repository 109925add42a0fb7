// SPDX-License-Identifier: MIT

/// Which media types are meant: `application/json` exactly, `text/*`, `*/*`, or `+json` for all types with that suffix.
///
/// Case does not matter. The suffix is the one of RFC 6838 §4.2.8: `application/problem+json` has `+json`.
public struct MediaTypePattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The pattern in lower case.
    public let description: String

    /// Creates a pattern from its text.
    public init(_ text: String) {
        description = text.lowercased()
    }

    /// Creates a pattern from its text.
    public init(stringLiteral text: String) {
        self.init(text)
    }

    /// Whether a media type, without parameters, is meant.
    public func matches(_ mediaType: String) -> Bool {
        let mediaType = mediaType.lowercased()
        if description == "*/*" { return true }
        if description.hasPrefix("+") { return mediaType.hasSuffix(description) }
        if description.hasSuffix("/*") { return mediaType.hasPrefix(description.dropLast()) }
        return mediaType == description
    }
}
