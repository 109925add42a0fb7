// SPDX-License-Identifier: MIT

/// A pattern for media types: `application/json` for one type, `text/*` or `*/*` for many, or `+json` for all types
/// with that structured syntax suffix.
///
/// Matching ignores case and the parameters of the media type, such as `charset`. For suffixes see RFC 6838 §4.2.8:
/// `application/problem+json` matches `+json`, but `application/json` does not. A body without a media type matches no
/// pattern, not even `*/*`.
public struct MediaTypePattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The pattern in lower case.
    public let description: String

    /// Creates a pattern from its text, such as `application/json`, `text/*`, `*/*` or `+json`.
    ///
    /// The text is converted to lower case and not checked otherwise: any other text matches only a media type equal to
    /// it, and text with parameters matches none.
    public init(_ text: String) {
        description = text.lowercased()
    }

    /// Creates a pattern from a literal, such as `application/json`, `text/*`, `*/*` or `+json`, which is converted to
    /// lower case and not checked otherwise; see ``init(_:)``.
    public init(stringLiteral text: String) {
        self.init(text)
    }

    /// Returns whether the pattern matches a media type, which must not have parameters.
    package func matches(_ mediaType: String) -> Bool {
        let mediaType = mediaType.lowercased()
        if description == "*/*" { return true }
        if description.hasPrefix("+") { return mediaType.hasSuffix(description) }
        if description.hasSuffix("/*") { return mediaType.hasPrefix(description.dropLast()) }
        return mediaType == description
    }
}
