// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// An OAuth 2.0 bearer token (RFC 6750). Its descriptions never contain the token itself.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The token, as sent in `Authorization`.
    public var value: String
    /// The expiry date; `nil` if it is unknown.
    public var expires: Date?

    /// Creates a token; without an expiry date it is used until a server refuses it.
    public init(_ value: String, expires: Date? = nil) {
        self.value = value
        self.expires = expires
    }

    /// The expiry date, without the token.
    public var description: String { "BearerToken(…\(expires.map { ", until \($0.formatted(.iso8601))" } ?? ""))" }
    /// A mirror that contains only the expiry date.
    public var customMirror: Mirror { Mirror(self, children: ["expires": expires as Any]) }
}
