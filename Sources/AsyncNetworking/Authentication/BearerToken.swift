// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// What shows who makes a request to whoever holds it, RFC 6750. Its description never shows the token.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    /// The token itself.
    public var value: String
    /// When it ends; nil where that is not known.
    public var expires: Date?

    /// Creates a token.
    public init(_ value: String, expires: Date? = nil) {
        self.value = value
        self.expires = expires
    }

    /// When it ends, without the token.
    public var description: String { "BearerToken(…\(expires.map { ", until \($0.formatted(.iso8601))" } ?? ""))" }
    /// The same as the description.
    public var debugDescription: String { description }
    /// A mirror without the token.
    public var customMirror: Mirror { Mirror(self, children: ["expires": expires as Any]) }
}
