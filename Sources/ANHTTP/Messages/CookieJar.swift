// SPDX-License-Identifier: MIT

/// A store of a transport's cookies.
package protocol CookieJar: Sendable {
    /// Returns all cookies, in any order.
    func cookies() async -> [Cookie]
    /// Adds cookies; each replaces one with the same name, domain and path.
    func set(_ cookies: [Cookie]) async
    /// Removes the cookies with the same names, domains and paths as the given ones.
    func remove(_ cookies: [Cookie]) async
    /// Removes all cookies.
    func removeAll() async
    /// Whether the store may contain a cookie, or may have contained one.
    ///
    /// A session with a response cache asks before each request. A response to a request that may have contained
    /// cookies is not used in another session.
    var mayHoldCookies: Bool { get }
}

extension Request {
    /// Whether stored cookies are sent with this request, and cookies of its responses are stored; `nil`, the default,
    /// to use ``TransferOptions/handlesCookies``.
    ///
    /// A `Cookie` field of the request itself is sent in any case: after the stored cookies, in the same field, or
    /// unchanged if cookies are not handled. The property has no effect with a transport that stores no cookies, such
    /// as a mock.
    public var handlesCookies: Bool? {
        get { self[HandlesCookies.self] }
        set { self[HandlesCookies.self] = newValue }
    }
}

private enum HandlesCookies: RequestAttribute {
    static var defaultValue: Bool? { nil }
}
