// SPDX-License-Identifier: MIT

import ANHTTP
import CCurl
import FoundationEssentials
import Glibc
import HTTPTypes

/// The data shared by a transport's easy handles, on all its event loops: TLS sessions, addresses and, optionally,
/// cookies. With ``CurlDefects/unlockedLookups``, each event loop has its own addresses.
///
/// A share with cookies provides them to every handle that is attached to it, so handles without cookies use a separate
/// share, with its own TLS sessions.
///
/// Attaching to a share is safe at any time, because libcurl calls its locks.
final class HandleShares: Sendable {
    private let defects: CurlDefects
    private let sessionShare: CurlShare
    private let cookieShare: CurlShare
    /// The handle with which the cookies are read and changed. Used with the lock of the cookies only.
    private nonisolated(unsafe) let handle: EasyHandle
    /// Set before a cookie can be sent.
    let cookieFlag = CookieFlag()

    init(_ defects: CurlDefects) throws(TransportError) {
        self.defects = defects
        let kinds =
            [CURL_LOCK_DATA_SSL_SESSION] + (defects.contains(.unlockedLookups) ? [] : [CURL_LOCK_DATA_DNS])
        sessionShare = try CurlShare(kinds)
        let cookieShare = try CurlShare(kinds + [CURL_LOCK_DATA_COOKIE])
        unsafe handle = try Self.makeHandle(attachedTo: cookieShare)
        self.cookieShare = cookieShare
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
        guard withCookies else { return try sessionShare.attach(to: other) }
        try cookieShare.attach(to: other)
        try other.set(CURLOPT_COOKIEFILE, "")
    }

    /// All cookies, including expired ones, with the paths by which they are sent.
    private var stored: [Cookie] { unsafe compactMapLines { unsafe cookie(String(decoding: $0, as: UTF8.self)) } }

    /// Returns the values that `transform` returns for the lines of all cookies, whose bytes are those that servers have sent.
    /// See CURLINFO_COOKIELIST(3).
    private func compactMapLines<Value>(_ transform: (UnsafeRawBufferPointer) -> Value?) -> [Value] {
        var list: UnsafeMutablePointer<curl_slist>?
        guard unsafe ccurl_get_list(handle.raw, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
        defer { unsafe curl_slist_free_all(list) }
        var values: [Value] = []
        var node = unsafe list
        while let current = unsafe node {
            if let text = unsafe current.pointee.data,
                let value = unsafe transform(UnsafeRawBufferPointer(start: text, count: strlen(text)))
            {
                values.append(value)
            }
            unsafe node = unsafe current.pointee.next
        }
        return values
    }

    private func cookie(_ line: String) -> Cookie? {
        guard var cookie = Cookie(netscapeLine: line) else { return nil }
        if defects.contains(.rawCookiePaths) { cookie.path = Cookie.compared(cookie.path) ?? "/" }
        return cookie
    }

    /// Returns the value of the field `Cookie` that libcurl is given: the request's own, after the stored cookies if the
    /// engine sends them; `nil` for none.
    ///
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` if the stored cookies leave no room for the request's
    ///   own: libcurl would leave them out.
    func field(for exchange: Exchange, own: String?) throws(TransportError) -> String? {
        guard exchange.cookies == .engine || own != nil && exchange.cookies == .libcurl, cookieFlag.isSet else {
            return own
        }
        let url = exchange.request.url.withASCIIHost
        let isCounted = exchange.cookies == .libcurl && defects.contains(.headBesideCookies)
        let head = isCounted ? CookieHandling.sizeOfHead(before: exchange.request, exchange.options) : 0
        let stored = Cookie.field(of: cookies(), for: url, below: Cookie.maximumFieldSize - head)
        guard let own else { return stored.value }
        guard stored.isComplete else {
            let reason =
                "The stored cookies leave no room for the request's own Cookie field of \(own.utf8.count) bytes."
            throw TransportError(.invalidRequest(.option(reason)))
        }
        guard exchange.cookies == .engine, let value = stored.value else { return own }
        return "\(value); \(own)"
    }

    /// Removes cookies that responses without TLS have set, and that overlay secure ones (RFC 6265bis §5.7): libcurl
    /// checks this only for cookies of the same domain.
    ///
    /// - Parameter names: The names of the cookies in lowercase, by the host of the response.
    func removeOverlays(_ names: [String: Set<String>]) {
        withCookies {
            let stored = stored
            let all = names.values.reduce(into: Set()) { $0.formUnion($1) }
            let related = Dictionary(grouping: stored) { $0.name.lowercased() }.filter { all.contains($0.key) }
            for (name, cookies) in related {
                let secure = cookies.filter { $0.isSecure && !$0.isExpired() }
                guard !secure.isEmpty else { continue }
                end(
                    cookies.filter { cookie in
                        !cookie.isSecure && secure.contains(where: cookie.overlays)
                            && names.contains { $1.contains(name) && cookie.mayBeSet(by: $0) }
                    })
            }
        }
    }

    /// Stores the cookies of `Set-Cookie` fields of which libcurl knows nothing, by the rules that it would apply.
    ///
    /// Without TLS, an attacker could otherwise replace a secure cookie of the same host. libcurl does not check this for
    /// the lines that it is given, because it trusts the program.
    func store(_ fields: [String], from url: URL) {
        guard !fields.isEmpty else { return }
        let url = url.withASCIIHost
        withCookies {
            let stored = stored
            let cookies = fields.prefix(Cookie.maximumLineCount).compactMap {
                Cookie(setCookie: $0, from: url, replacing: stored)
            }
            guard !url.isHTTPS else { return store(cookies) }
            let secure = stored.filter { $0.isSecure && !$0.isExpired() }
            store(cookies.filter { !secure.contains(where: $0.overlays) })
        }
    }

    /// Stores cookies, except those that libcurl's format cannot represent.
    private func store(_ cookies: [Cookie]) {
        for line in cookies.compactMap(\.netscapeLine) { perform(line) }
    }

    /// Removes cookies.
    private func end(_ cookies: [Cookie]) {
        for line in cookies.flatMap(\.endingLines) { perform(line) }
        let repaired = Set(cookies.lazy.filter(\.isRepaired).map(\.identity))
        if !repaired.isEmpty { endRepaired(repaired) }
    }

    /// Removes cookies that are no UTF-8, by their bytes: as Latin-1, each is a character.
    private func endRepaired(_ identities: Set<[String]>) {
        let texts = unsafe compactMapLines { line -> String? in
            let isMeant = unsafe cookie(String(decoding: line, as: UTF8.self)).map { identities.contains($0.identity) }
            return isMeant == true ? unsafe String(String.UnicodeScalarView(line.map { Unicode.Scalar($0) })) : nil
        }
        for line in texts.flatMap({ cookie($0)?.endingLines ?? [] }) {
            var bytes = line.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } + [0]
            unsafe try? handle.set(CURLOPT_COOKIELIST, pointer: &bytes)
        }
    }

    /// Adds a cookie, replacing one with the same name, domain and path; the line `ALL` removes all cookies. See
    /// CURLOPT_COOKIELIST(3).
    private func perform(_ line: String) {
        unsafe try? handle.set(CURLOPT_COOKIELIST, line)
    }

    /// Runs a closure while no handle, on any thread, reads or changes the cookies.
    private func withCookies<Result>(_ body: () -> Result) -> Result {
        cookieShare.withLock(of: CURL_LOCK_DATA_COOKIE, body)
    }

    /// All cookies.
    func cookies() -> [Cookie] { withCookies { stored } }

    /// Adds cookies; each replaces one with the same name, domain and path.
    func set(_ cookies: [Cookie]) {
        guard !cookies.isEmpty else { return }
        cookieFlag.set(cookies.count)
        withCookies { store(cookies) }
        limitCookies()
    }

    /// Removes cookies if there are too many: libcurl has no limit. It does not tell when a cookie was sent, but which are
    /// older in the same domain.
    func limitCookies() {
        let limit = Self.maximumCount + Self.maximumCount / 10
        guard cookieFlag.maximumCount > limit else { return }
        withCookies {
            // Another loop may have done so meanwhile.
            cookieFlag.recount(above: limit) {
                let stored = stored
                end(Cookie.excess(of: stored, keeping: Self.maximumCount, perDomain: 50))
                return min(stored.count, Self.maximumCount)
            }
        }
    }

    /// The number of cookies that are kept if there are more by a tenth (RFC 6265 §6.1).
    private static let maximumCount = 3_000

    /// Removes the cookies with the same names, domains and paths as the given ones.
    func remove(_ cookies: [Cookie]) {
        withCookies { end(cookies) }
    }

    /// Removes all cookies.
    func removeAll() {
        withCookies { perform("ALL") }
    }
}

extension CurlEngine {
    func cookies() -> [Cookie] { context.shares.cookies() }

    func set(_ cookies: [Cookie]) { context.shares.set(cookies) }

    func remove(_ cookies: [Cookie]) { context.shares.remove(cookies) }

    func removeAll() { context.shares.removeAll() }
}

/// How the stored cookies are sent with a request, and those of its responses are stored.
enum CookieHandling {
    /// No cookies are sent or stored.
    case none
    /// libcurl does both.
    case libcurl
    /// The engine does both: libcurl does not see the messages of a WebSocket connection, and considers another host in a `Host`
    /// field the host of the cookies, which is that of the URL (RFC 6265 §5.3, §5.4); and see
    /// ``CurlDefects/headBesideCookies``.
    case engine

    init(_ request: borrowing Request, _ options: borrowing TransferOptions, _ defects: CurlDefects) {
        if !(request.handlesCookies ?? options.handlesCookies) {
            self = .none
        } else if request.webSocketOptions != nil
            || request.headers[.host].map({ $0 != request.url.authority }) == true
        {
            self = .engine
        } else if defects.contains(.headBesideCookies), Self.sizeOfHead(before: request, options) > Self.roomyHead {
            self = .engine
        } else {
            self = .libcurl
        }
    }

    /// The size of a head beside which a cookie of 4,096 bytes fits into libcurl's limit.
    private static let roomyHead = 4_000

    /// Returns a size that the head before the field `Cookie` does not reach, `Int.max` if it has no limit: the URL, the host
    /// and what libcurl writes to authenticate by Basic. Digest repeats what the server has sent, and tokens have any size.
    static func sizeOfHead(before request: borrowing Request, _ options: borrowing TransferOptions) -> Int {
        let url = request.url.absoluteString.utf8.count
        var (size, schemes) = (url + min(url, 300) + 200, Set<AuthenticationScheme>())
        if let authentication = request.transportAuthentication {
            schemes = Set([authentication.server?.scheme, authentication.proxy?.scheme].compactMap(\.self))
            size += url + 1_000
        }
        if case .proxy(let proxy) = options.proxy, let credential = proxy.credential, !request.url.isHTTPS {
            schemes.formUnion(credential.schemes ?? [.basic])
            size += url + 1_000
        }
        return schemes.isSubset(of: [.basic]) ? size : .max
    }
}

/// An owned `CURLSH *`, the data shared by easy handles besides connections, with its locks. See libcurl-share(3).
@safe
struct CurlShare: ~Copyable, Sendable {
    private nonisolated(unsafe) let raw: UnsafeMutableRawPointer
    private nonisolated(unsafe) let locks: UnsafeMutablePointer<pthread_mutex_t>

    /// Creates a share of the given kinds of data. See CURLSHOPT_SHARE(3).
    init(_ kinds: [curl_lock_data]) throws(TransportError) {
        guard let raw = unsafe curl_share_init() else {
            throw TransportError(.internalInconsistency("curl_share_init failed."))
        }
        unsafe self.raw = unsafe raw
        unsafe locks = Self.makeLocks()
        unsafe _ = ccurl_share_set_locks(
            raw, { _, kind, _, locks in if let locks = unsafe locks { unsafe CurlShare.acquire(kind, in: locks) } },
            { _, kind, locks in if let locks = unsafe locks { unsafe CurlShare.release(kind, in: locks) } }, locks)
        for kind in kinds { unsafe _ = ccurl_share(raw, kind) }
    }

    /// Frees the share, which no handle may use any more.
    deinit {
        guard unsafe curl_share_cleanup(raw) == CURLSHE_OK else { return }
        for index in 0..<Self.lockCount { unsafe _ = pthread_mutex_destroy(locks + index) }
        unsafe locks.deallocate()
    }

    /// Attaches a handle to the share.
    func attach(to handle: borrowing EasyHandle) throws(CurlFailure) {
        unsafe try handle.set(CURLOPT_SHARE, pointer: raw)
    }

    /// Runs a closure with the lock of a kind of data, in which libcurl may acquire it again.
    func withLock<Result>(of kind: curl_lock_data, _ body: () -> Result) -> Result {
        unsafe Self.acquire(kind, in: locks)
        defer { unsafe Self.release(kind, in: locks) }
        return body()
    }

    private static let lockCount = Int(CURL_LOCK_DATA_LAST.rawValue)

    /// Returns one recursive lock for each kind of data.
    private static func makeLocks() -> UnsafeMutablePointer<pthread_mutex_t> {
        var attributes = pthread_mutexattr_t()
        unsafe pthread_mutexattr_init(&attributes)
        defer { unsafe pthread_mutexattr_destroy(&attributes) }
        unsafe pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_RECURSIVE))
        let locks = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: lockCount)
        for index in 0..<lockCount {
            unsafe (locks + index).initialize(to: pthread_mutex_t())
            unsafe pthread_mutex_init(locks + index, &attributes)
        }
        return unsafe locks
    }

    private static func acquire(_ kind: curl_lock_data, in locks: UnsafeMutableRawPointer) {
        unsafe pthread_mutex_lock(lock(of: kind, in: locks))
    }

    private static func release(_ kind: curl_lock_data, in locks: UnsafeMutableRawPointer) {
        unsafe pthread_mutex_unlock(lock(of: kind, in: locks))
    }

    private static func lock(
        of kind: curl_lock_data, in locks: UnsafeMutableRawPointer
    ) -> UnsafeMutablePointer<pthread_mutex_t> {
        unsafe locks.assumingMemoryBound(to: pthread_mutex_t.self) + Int(kind.rawValue)
    }
}
