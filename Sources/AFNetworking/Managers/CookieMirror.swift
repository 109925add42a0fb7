// SPDX-License-Identifier: MIT

import ANSystem
package import AsyncNetworking

/// The cookies of two stores when they were last compared, so that a change of one is carried over to the other.
///
/// The stores need not represent a cookie alike: each is compared with its own earlier content.
package struct CookieMirror: Sendable {
    private var last: [Side: [Key: Cookie]] = [:]

    /// Creates the mirror of two empty stores.
    package init() {}

    /// One of the two stores.
    package enum Side: Sendable {
        /// The `HTTPCookieStorage` of a configuration.
        case storage
        /// The cookies of a core session, which libcurl sends and receives.
        case jar
    }

    /// The changes of a store.
    package struct Changes: Sendable {
        /// The cookies that are new or have changed.
        package var updated: [Cookie] = []
        /// The cookies that are missing.
        package var removed: [Cookie] = []

        package var isEmpty: Bool { updated.isEmpty && removed.isEmpty }
    }

    /// Returns the changes in a store with the given cookies; those that have expired do not count. One whose last known
    /// value has expired was not removed: a user of the other store may have renewed it.
    package func changes(of side: Side, to cookies: [Cookie], at date: Date = .now) -> Changes {
        let (before, now) = (last[side] ?? [:], Self.valid(cookies, date))
        return Changes(
            updated: now.filter { before[$0.key] != $0.value }.map(\.value),
            removed: before.filter { now[$0.key] == nil && !$0.value.isExpired(at: date) }.map(\.value))
    }

    /// Whether a cookie of the storage has the value that was noted last, and was not set to another one by another user
    /// since. One whose life was only extended is the same: a logout ends it.
    fileprivate func isNoted(_ stored: Cookie) -> Bool { last[.storage]?[Key(stored)]?.value == stored.value }

    /// Notes that changes were carried over, given the cookies of both stores afterwards. Cookies that are not part of
    /// the changes may have changed since, and are not noted, nor is a value other than the one that was carried over.
    package mutating func note(_ changes: Changes, storage: [Cookie], jar: [Cookie]) {
        for (side, cookies) in [(Side.storage, Self.valid(storage)), (.jar, Self.valid(jar))] {
            for cookie in changes.updated {
                let found = cookies[Key(cookie)]
                last[side, default: [:]][Key(cookie)] = found.map { $0.value == cookie.value ? $0 : cookie }
            }
            for cookie in changes.removed { last[side, default: [:]][Key(cookie)] = nil }
            last[side] = last[side]?.filter { cookies[$0.key] != nil || !$0.value.isExpired(at: .now) }
        }
    }

    /// The number of cookies that are known of a store.
    package func count(of side: Side) -> Int { last[side]?.count ?? 0 }

    /// The cookies that both stores can contain, by what identifies them.
    private static func valid(_ cookies: [Cookie], _ date: Date = .now) -> [Key: Cookie] {
        let valid = cookies.filter { !$0.isExpired(at: date) && $0.netscapeLine != nil }
        return Dictionary(valid.map { (Key($0), $0) }) { _, last in last }
    }

    /// The identity of a cookie in both stores.
    fileprivate struct Key: Hashable, Sendable {
        let name: String
        let domain: String
        let includesSubdomains: Bool
        let path: String

        init(_ cookie: Cookie) {
            name = cookie.name
            domain = cookie.domain
            includesSubdomains = cookie.includesSubdomains
            // libcurl ignores a slash at the end.
            path = cookie.path.count > 1 && cookie.path.hasSuffix("/") ? String(cookie.path.dropLast()) : cookie.path
        }
    }
}

/// Keeps the cookies of a core session equal to those of a Foundation storage, which other sessions may use, too: the
/// changes of the storage are carried over before each request, and those of the session after each response.
final class CookieSynchronizer: Interceptor {
    private let storage: HTTPCookieStorage
    /// Held while the storage is read or changed.
    private let state = Lock(State())

    private struct State: Sendable {
        var mirror = CookieMirror()
        /// The number of changes of the mirror.
        var version = 0
        /// The cookies of the core session, which is created after its interceptors.
        var jar: (any CookieJar)?

        mutating func note(_ changes: CookieMirror.Changes, storage: [Cookie], jar: [Cookie]) {
            mirror.note(changes, storage: storage, jar: jar)
            version += 1
        }
    }

    init(_ storage: HTTPCookieStorage) {
        self.storage = storage
    }

    /// Begins to synchronize the cookies of a core session.
    func start(_ session: SessionManager) {
        state.set(\.jar, to: session.cookies.jar)
    }

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        guard request.handlesCookies != false, let jar = state.withLock({ $0.jar }) else {
            return try await next(request)
        }
        await load(into: jar)
        do {
            let response = try await next(request)
            await save(jar)
            return response
        } catch {
            // Redirects and challenges before the failure may have set cookies.
            await save(jar)
            throw error
        }
    }

    private var stored: [Cookie] { (storage.cookies ?? []).map(Cookie.init) }

    /// Carries the changes of the storage over.
    private func load(into jar: any CookieJar) async {
        let changes = state.withLock { $0.mirror.changes(of: .storage, to: stored) }
        guard !changes.isEmpty else { return }
        await jar.remove(changes.removed)
        await jar.set(changes.updated)
        let cookies = await jar.cookies()
        state.withLock { $0.note(changes, storage: changes.updated, jar: cookies) }
    }

    /// Carries the changes of the session over.
    private func save(_ jar: any CookieJar) async {
        guard jar.mayHoldCookies else { return }
        var isSaved = false
        while !isSaved {
            let version = state.withLock { $0.version }
            let cookies = await jar.cookies()
            isSaved = state.withLock { state in
                // A cookie that was carried over in the meantime would seem to be missing.
                guard state.version == version else { return false }
                let changes = state.mirror.changes(of: .jar, to: cookies)
                guard !changes.isEmpty else { return true }
                storage.apply(changes, since: state.mirror)
                state.note(changes, storage: stored, jar: cookies)
                return true
            }
        }
    }
}

extension HTTPCookieStorage {
    /// Carries the changes of the other store over to the cookies that this one has under the same identity: it
    /// distinguishes paths, and spellings of domains, that the other one does not. A removal does not apply to a cookie
    /// that was set to another value since the mirror noted it.
    package func apply(_ changes: CookieMirror.Changes, since mirror: CookieMirror) {
        let stored = Dictionary(grouping: cookies ?? []) { CookieMirror.Key(Cookie($0)) }
        for cookie in changes.removed {
            let own = stored[CookieMirror.Key(cookie)] ?? []
            guard let last = own.last, mirror.isNoted(Cookie(last)) else { continue }
            for own in own { deleteCookie(own) }
        }
        for cookie in changes.updated {
            let known = stored[CookieMirror.Key(cookie)] ?? []
            guard let changed = HTTPCookie(cookie, replacing: known.last) else { continue }
            for own in known.dropLast() { deleteCookie(own) }
            setCookie(changed)
        }
    }
}

extension Cookie {
    /// Creates a cookie from Foundation's, whose domain begins with a dot if it includes subdomains.
    fileprivate init(_ cookie: HTTPCookie) {
        self.init(
            name: cookie.name, value: cookie.value, domain: cookie.domain,
            includesSubdomains: cookie.domain.hasPrefix("."), path: cookie.path, isSecure: cookie.isSecure,
            isHTTPOnly: cookie.isHTTPOnly, expires: cookie.expiresDate)
    }
}

extension HTTPCookie {
    /// Creates a cookie from the core's, with the domain and path of the one that it replaces; `nil` if Foundation
    /// rejects it.
    fileprivate convenience init?(_ cookie: Cookie, replacing own: HTTPCookie?) {
        var properties: [HTTPCookiePropertyKey: Any] = [
            .name: cookie.name, .value: cookie.value, .path: own?.path ?? cookie.path,
            .domain: own?.domain ?? (cookie.includesSubdomains ? "." : "") + cookie.domain,
        ]
        properties[.secure] = cookie.isSecure ? "TRUE" : nil
        properties[HTTPCookiePropertyKey("HttpOnly")] = cookie.isHTTPOnly ? "TRUE" : nil
        properties[.expires] = cookie.expires
        self.init(properties: properties)
    }
}
