// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// An OAuth 2.0 bearer token (RFC 6750), with the refresh token for the next one. Its descriptions contain neither.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible {
    /// The token, as sent in `Authorization`.
    public var value: String {
        get { secret.value }
        set { secret.value = newValue }
    }
    private var secret: Secret<String>
    /// The expiry date; `nil` if it is unknown.
    public var expires: Date?
    /// The token by which an authenticator's closure gets the next bearer token (RFC 6749 §6); `nil` if there is none.
    public var refreshToken: String? {
        get { secretRefreshToken.value }
        set { secretRefreshToken.value = newValue }
    }
    private var secretRefreshToken: Secret<String?>

    /// Creates a token; without an expiry date it is used until a server refuses it.
    public init(_ value: String, expires: Date? = nil, refreshToken: String? = nil) {
        secret = Secret(value)
        self.expires = expires
        secretRefreshToken = Secret(refreshToken)
    }

    /// The expiry date, without the token.
    public var description: String { "BearerToken(…\(expires.map { ", until \($0.formatted(.iso8601))" } ?? ""))" }
}
