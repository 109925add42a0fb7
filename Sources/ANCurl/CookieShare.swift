// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials

/// The cookies of an engine, owned: one `CURLSH *` that all its handles share, with a handle to look into it.
///
/// libcurl's share wants locks only where several threads use it; here it is the loop's thread alone. See
/// libcurl-share(3).
@safe
struct CookieShare: ~Copyable {
    private let share: UnsafeMutableRawPointer
    private let handle: EasyHandle

    init() throws(TransportError) {
        guard let share = unsafe curl_share_init() else {
            throw .internalInconsistency("curl_share_init failed.", TransferFacts())
        }
        let handle: EasyHandle
        do throws(CurlFailure) {
            handle = try EasyHandle()
        } catch {
            unsafe _ = curl_share_cleanup(share)
            throw error.transportError
        }
        unsafe _ = ccurl_share(share, CURL_LOCK_DATA_COOKIE)
        unsafe _ = ccurl_set_pointer(handle.raw, CURLOPT_SHARE, share)
        unsafe self.share = unsafe share
        self.handle = handle
    }

    deinit {
        // A share is not freed while a handle uses it.
        unsafe try? handle.set(CURLOPT_SHARE, pointer: nil)
        unsafe _ = curl_share_cleanup(share)
    }

    /// Lets a handle use the cookies, or not. The empty name of a file turns its cookies on, which a share alone does not;
    /// without the share it would have cookies of its own. See CURLOPT_COOKIEFILE(3).
    func attach(_ other: borrowing EasyHandle, _ isAttached: Bool) throws(CurlFailure) {
        unsafe try other.set(CURLOPT_SHARE, pointer: isAttached ? share : nil)
        try other.set(CURLOPT_COOKIEFILE, isAttached ? "" : nil)
    }

    /// All cookies, those that have ended included. See CURLINFO_COOKIELIST(3).
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

    /// Adds a cookie in place of one with the same name, domain and path, or removes all by `ALL`. See
    /// CURLOPT_COOKIELIST(3).
    func perform(_ line: String) {
        try? handle.set(CURLOPT_COOKIELIST, line)
    }
}

extension CurlEngine: CookieJar {
    func cookies() -> [Cookie] {
        state.cookies.lines.compactMap { Cookie(netscapeLine: $0) }
    }

    func set(_ cookies: [Cookie]) {
        for line in cookies.compactMap(\.netscapeLine) { state.cookies.perform(line) }
    }

    /// libcurl removes no single cookie, but it drops one that has ended the next time that it looks.
    func remove(_ cookies: [Cookie]) {
        set(
            cookies.map { cookie in
                var ended = cookie
                ended.expires = .distantPast
                return ended
            })
    }

    func removeAll() {
        state.cookies.perform("ALL")
    }
}
