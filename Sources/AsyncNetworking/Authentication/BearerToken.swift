// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// An OAuth 2.0 bearer token (RFC 6750), with the refresh token for the next one. Its descriptions contain neither.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The token, as sent in `Authorization`.
    public var value: String
    /// The expiry date; `nil` if it is unknown.
    public var expires: Date?
    /// The token by which an authenticator's closure gets the next bearer token (RFC 6749 §6); `nil` if there is none.
    public var refreshToken: String?

    /// Creates a token; without an expiry date it is used until a server refuses it.
    public init(_ value: String, expires: Date? = nil, refreshToken: String? = nil) {
        self.value = value
        self.expires = expires
        self.refreshToken = refreshToken
    }

    /// The expiry date, without the token.
    public var description: String { "BearerToken(…\(expires.map { ", until \($0.formatted(.iso8601))" } ?? ""))" }
    /// A mirror that contains only the expiry date.
    public var customMirror: Mirror { Mirror(self, children: ["expires": expires as Any]) }
}
