// SPDX-License-Identifier: MIT

/// Where a transport keeps cookies.
public protocol CookieJar: Sendable {
    /// All cookies, in any order.
    func cookies() async -> [Cookie]
    /// Adds cookies, each in place of one with the same name, domain and path.
    func set(_ cookies: [Cookie]) async
    /// Removes cookies with the names, domains and paths of these.
    func remove(_ cookies: [Cookie]) async
    /// Removes all.
    func removeAll() async
}

extension Transport {
    /// A transport without cookies.
    public var cookieJar: (any CookieJar)? { nil }
}

extension Request {
    /// Whether cookies are sent with this request and kept from its responses; nil, the default, means as
    /// ``TransferOptions/handlesCookies`` says.
    public var handlesCookies: Bool? {
        get { self[HandlesCookies.self] }
        set { self[HandlesCookies.self] = newValue }
    }
}

private enum HandlesCookies: RequestAttribute {
    static var defaultValue: Bool? { nil }
}
