// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// An OAuth 2.0 bearer token (RFC 6750), with the refresh token for the next one. Its descriptions contain neither. An
/// ``Authenticator`` sends and refreshes the token.
public struct BearerToken: Hashable, Sendable, CustomStringConvertible {
    /// The token, sent in `Authorization` after `Bearer`. It is not checked: `HTTPFields` replaces characters that a
    /// header field cannot contain, such as line breaks, by spaces.
    public var value: String {
        get { secret.value }
        set { secret.value = newValue }
    }
    private var secret: Secret<String>
    /// The expiry date; `nil`, the default, if it is unknown. The token is then used until a server refuses it. An
    /// ``Authenticator`` refreshes the token shortly before this date.
    public var expires: Date?
    /// The token by which the refresh closure of an ``Authenticator`` gets the next bearer token (RFC 6749 §6); `nil`,
    /// the default, if there is none. The library itself does not use it.
    public var refreshToken: String? {
        get { secretRefreshToken.value }
        set { secretRefreshToken.value = newValue }
    }
    private var secretRefreshToken: Secret<String?>

    /// Creates a token.
    ///
    /// - Parameters:
    ///   - value: The token, without `Bearer`.
    ///   - expires: The expiry date; `nil`, the default, if it is unknown.
    ///   - refreshToken: The refresh token for the next bearer token; `nil`, the default, for none.
    public init(_ value: String, expires: Date? = nil, refreshToken: String? = nil) {
        secret = Secret(value)
        self.expires = expires
        secretRefreshToken = Secret(refreshToken)
    }

    /// The expiry date, without the token and the refresh token, such as `BearerToken(…, until 2030-01-31T12:00:00Z)`;
    /// `BearerToken(…)` if it is unknown.
    public var description: String { "BearerToken(…\(expires.map { ", until \($0.formatted(.iso8601))" } ?? ""))" }
}
