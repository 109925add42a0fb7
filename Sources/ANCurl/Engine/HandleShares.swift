// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials

/// The data shared by an engine's easy handles: TLS sessions and, optionally, cookies.
///
/// A share with cookies provides them to every handle that is attached to it, so handles without cookies use a separate
/// share, with its own TLS sessions.
struct HandleShares: ~Copyable {
    private let sessions: CurlShare
    /// The handle with which the cookies are read and changed.
    private let handle: EasyHandle
    private let cookies: CurlShare

    init() throws(TransportError) {
        let sessions = try CurlShare([CURL_LOCK_DATA_SSL_SESSION])
        let cookies = try CurlShare([CURL_LOCK_DATA_SSL_SESSION, CURL_LOCK_DATA_COOKIE])
        handle = try Self.makeHandle(attachedTo: cookies)
        self.sessions = sessions
        self.cookies = cookies
    }

    private static func makeHandle(attachedTo share: borrowing CurlShare) throws(TransportError) -> EasyHandle {
        do throws(CurlFailure) {
            let handle = try EasyHandle()
            try share.attach(to: handle)
            return handle
        } catch {
            throw error.transportError
        }
    }

    deinit {
        // A share is not freed while a handle uses it.
        unsafe try? handle.set(CURLOPT_SHARE, pointer: nil)
    }

    /// Attaches a handle to the share with or without cookies. An empty cookie file name enables the handle's cookies,
    /// which a share alone does not. See CURLOPT_COOKIEFILE(3).
    func attach(to other: borrowing EasyHandle, withCookies: Bool) throws(CurlFailure) {
        guard withCookies else { return try sessions.attach(to: other) }
        try cookies.attach(to: other)
        try other.set(CURLOPT_COOKIEFILE, "")
    }

    /// All cookies, including expired ones, one per line. See CURLINFO_COOKIELIST(3).
    var lines: [String] {
        var list: UnsafeMutablePointer<curl_slist>?
        guard unsafe ccurl_get_list(handle.raw, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
        defer { unsafe curl_slist_free_all(list) }
        var lines: [String] = []
        var node = unsafe list
        while let current = unsafe node {
            if let text = unsafe current.pointee.data { lines.append(unsafe String(cString: text)) }
            unsafe node = unsafe current.pointee.next
        }
        return lines
    }

    /// Returns the cookies for a URL as the value of a field, those with longer paths first (RFC 6265 §5.4); `nil` if there
    /// are none.
    func text(for url: URL) -> String? {
        let cookies = lines.compactMap { Cookie(netscapeLine: $0) }
            .filter { $0.matches(url) && !$0.isExpired() }
            .sorted { $0.path.utf8.count > $1.path.utf8.count }
        return cookies.isEmpty ? nil : cookies.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    /// The size from which libcurl leaves out cookies, and the request's own `Cookie` field with them.
    static let maximumFieldSize = 8190 - "Cookie: ".utf8.count

    /// Removes cookies that a response without TLS has set and that overlay secure ones (RFC 6265bis §5.7): libcurl checks
    /// this only for cookies of the same domain.
    func removeOverlays(setBy fields: [String], from url: URL) {
        let names = Set(fields.compactMap { Cookie(setCookie: $0, from: url)?.name.lowercased() })
        let stored = lines.compactMap { Cookie(netscapeLine: $0) }
        let secure = stored.filter { $0.isSecure && !$0.isExpired() }
        guard !names.isEmpty, !secure.isEmpty, let host = url.host()?.lowercased() else { return }
        remove(
            stored.filter { cookie in
                !cookie.isSecure && cookie.mayBeSet(by: host) && names.contains(cookie.name.lowercased())
                    && secure.contains(where: cookie.overlays)
            })
    }

    /// Replaces the cookies with expired ones, which libcurl removes at its next lookup; it has no function to remove a
    /// cookie.
    func remove(_ cookies: [Cookie]) {
        set(
            cookies.map { cookie in
                var ended = cookie
                ended.expires = .distantPast
                // libcurl does not compare the values, and a line cannot represent each of them.
                ended.value = ""
                return ended
            })
    }

    /// Adds a cookie, replacing one with the same name, domain and path; the line `ALL` removes all cookies. See
    /// CURLOPT_COOKIELIST(3).
    func perform(_ line: String) {
        try? handle.set(CURLOPT_COOKIELIST, line)
    }

    /// Stores cookies, except those that libcurl's format cannot represent.
    func set(_ cookies: [Cookie]) {
        for line in cookies.compactMap(\.netscapeLine) { perform(line) }
    }

    /// Stores the cookies of `Set-Cookie` fields of which libcurl knows nothing, by the rules that it would apply.
    ///
    /// Without TLS, an attacker could otherwise replace a secure cookie of the same host. libcurl does not check this for
    /// the lines that it is given, because it trusts the program.
    func store(_ fields: [String], from url: URL) {
        let cookies = fields.compactMap { Cookie(setCookie: $0, from: url) }
        guard !cookies.isEmpty, !url.isHTTPS else { return set(cookies) }
        let stored = lines.compactMap { Cookie(netscapeLine: $0) }.filter { $0.isSecure && !$0.isExpired() }
        set(cookies.filter { !stored.contains(where: $0.overlays) })
    }
}

extension CurlEngine: CookieJar, CookieState {
    func cookies() -> [Cookie] {
        state.shares.lines.compactMap { Cookie(netscapeLine: $0) }
    }

    nonisolated var mayHoldCookies: Bool { cookieFlag.isSet }

    func set(_ cookies: [Cookie]) {
        if !cookies.isEmpty { cookieFlag.set() }
        state.shares.set(cookies)
    }

    func remove(_ cookies: [Cookie]) {
        if !cookies.isEmpty { cookieFlag.set() }
        state.shares.remove(cookies)
    }

    func removeAll() {
        state.shares.perform("ALL")
    }
}

/// An owned `CURLSH *`, the data shared by an engine's easy handles besides connections.
///
/// libcurl's share requires locks only if several threads use it; here only the loop's thread does. See
/// libcurl-share(3).
@safe
struct CurlShare: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// Creates a share of the given kinds of data. See CURLSHOPT_SHARE(3).
    init(_ kinds: [curl_lock_data]) throws(TransportError) {
        guard let raw = unsafe curl_share_init() else {
            throw TransportError(.internalInconsistency("curl_share_init failed."))
        }
        for kind in kinds { unsafe _ = ccurl_share(raw, kind) }
        unsafe self.raw = unsafe raw
    }

    /// Frees the share, which no handle may use any more.
    deinit {
        unsafe _ = curl_share_cleanup(raw)
    }

    /// Attaches a handle to the share.
    func attach(to handle: borrowing EasyHandle) throws(CurlFailure) {
        unsafe try handle.set(CURLOPT_SHARE, pointer: raw)
    }
}
