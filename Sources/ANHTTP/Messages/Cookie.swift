// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// An HTTP cookie (RFC 6265), as stored in a `CookieStore`. Its description never contains the value.
public struct Cookie: Hashable, Sendable, CustomStringConvertible {
    /// The name of the cookie, which identifies it together with ``domain``, ``path`` and ``includesSubdomains``.
    ///
    /// It must not be empty or contain `=`, `;`, control characters or U+FFFD; see ``value``. A name that begins with
    /// `__Secure-` or `__Host-` requires that ``isSecure`` is `true` and, for `__Host-`, that ``path`` is `/` and ``includesSubdomains`` is
    /// `false` (RFC 6265bis §4.1.3). `CookieStore.set(_:)` throws `SessionError.invalidCookie(name:)` otherwise. Some
    /// versions of libcurl, such as 7.88, compare names without regard to case.
    public var name: String
    /// The value of the cookie, possibly empty, sent unchanged; it is not percent-encoded or quoted. It must not
    /// contain `;`, control characters or U+FFFD; `CookieStore.set(_:)` throws `SessionError.invalidCookie(name:)` for a
    /// cookie with such a value.
    ///
    /// The replacement character U+FFFD stands for bytes of a `Set-Cookie` field that are not valid UTF-8, such as
    /// Latin-1. Requests send the bytes, but such a cookie cannot be saved or set, and is not sent with WebSocket handshakes.
    public var value: String {
        get { secret.value }
        set { secret.value = newValue }
    }
    private var secret: Secret<String>
    /// The host that the cookie is for: a name, in its ASCII form `xn--…` if it is internationalized, or an IP address,
    /// without brackets for IPv6.
    ///
    /// The initializer converts it to lower case and removes leading dots; a value assigned later must already have
    /// that form. It must not be empty, begin with `#` or contain control characters; `CookieStore.set(_:)` throws
    /// `SessionError.invalidCookie(name:)` for a cookie with such a domain.
    public var domain: String
    /// Whether the cookie is also sent to subdomains of ``domain``; `false` by default, even if the domain was given
    /// with a leading dot. It has no effect if the domain is an IP address.
    public var includesSubdomains: Bool
    /// The path that the cookie is for; the cookie is also sent for paths below (RFC 6265 §5.1.4). `/`, the default, is
    /// for all paths. libcurl ignores a slash at the end of any other path, and stores the path without it: a cookie for `/a/`
    /// is also sent for `/a`.
    ///
    /// The path must begin with `/` and not contain control characters; `CookieStore.set(_:)` throws
    /// `SessionError.invalidCookie(name:)` for a cookie with another path.
    public var path: String
    /// Whether the cookie is sent over https only; `false` by default.
    ///
    /// Such a cookie is also sent over http to `localhost`, `127.0.0.1` and `::1`, which libcurl regards as secure.
    public var isSecure: Bool
    /// Whether scripts of a web page cannot read the cookie; `false` by default. The attribute has no effect here; it
    /// is kept for other programs that read the stored cookies.
    public var isHTTPOnly: Bool
    /// The expiration date; `nil`, the default, for a session cookie, which ends with its `SessionManager` unless it is
    /// saved. It is stored in whole seconds, rounded down, up to the end of the year 9999. Setting a cookie with a past
    /// date removes the stored one with the same ``name``, ``domain``, ``path`` and ``includesSubdomains``.
    public var expires: Date?

    /// Creates a cookie; by default it is for one host, all paths, and the session. The parts are not checked;
    /// `CookieStore.set(_:)` throws `SessionError.invalidCookie(name:)` for a cookie that cannot be stored.
    ///
    /// - Parameters:
    ///   - name: The name of the cookie.
    ///   - value: The value of the cookie, which is sent without encoding.
    ///   - domain: The host, which is converted to lower case and stripped of leading dots.
    ///   - includesSubdomains: Whether the cookie is also sent to subdomains; `false` by default.
    ///   - path: The path that the cookie is for, including paths below it; `/`, the default, for all paths.
    ///   - isSecure: Whether the cookie is sent over https only, except to the local host, see ``isSecure``; `false` by
    ///     default.
    ///   - isHTTPOnly: Whether scripts of a web page cannot read the cookie; `false` by default.
    ///   - expires: The expiration date; `nil`, the default, for a session cookie.
    public init(
        name: String, value: String, domain: String, includesSubdomains: Bool = false, path: String = "/",
        isSecure: Bool = false, isHTTPOnly: Bool = false, expires: Date? = nil
    ) {
        self.name = name
        secret = Secret(value)
        self.domain = Self.normalized(domain)
        self.includesSubdomains = includesSubdomains
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
    }

    /// Returns whether the cookie has expired at a date, by default now.
    package func isExpired(at date: Date = .now) -> Bool {
        expires.map { $0 <= date } ?? false
    }

    /// Returns whether the cookie is sent with requests to a URL (RFC 6265 §5.1.3, §5.1.4).
    package func matches(_ url: URL) -> Bool {
        guard let host = Self.host(of: url) else { return false }
        let isInDomain = host == domain || includesSubdomains && host.isBelow(domain)
        return isInDomain && (path == "/" || Self.covers(path, url.path(percentEncoded: true)))
            && (!isSecure || url.isHTTPS || ["localhost", "127.0.0.1", "::1"].contains(host))
    }

    /// Returns the value of the field `Cookie` for a request (RFC 6265 §5.4), as libcurl would write it: of the first 150
    /// cookies that match, those with longer paths, domains and names first, as many as fit before one that does not; `nil`
    /// if none does.
    ///
    /// - Parameters:
    ///   - cookies: All cookies in the order in which they were set.
    ///   - url: The URL of the request.
    ///   - size: The number of bytes that the value must not reach.
    package static func field(
        of cookies: [Cookie], for url: URL, below size: Int = maximumFieldSize
    ) -> (value: String?, isComplete: Bool) {
        let matching = cookies.lazy.filter { $0.matches(url) && !$0.isExpired() && !$0.isRepaired }
            .prefix(maximumMatchCount)
            .map { (rank: ($0.path.utf8.count, $0.domain.utf8.count, $0.name.utf8.count), cookie: $0) }
            .sorted { $0.rank > $1.rank }
        var field: String?
        for (_, cookie) in matching {
            let longer = (field.map { $0 + "; " } ?? "") + cookie.name + "=" + cookie.value
            guard longer.utf8.count < size else { return (field, false) }
            field = longer
        }
        return (field, true)
    }

    /// The limits of libcurl on a request's cookies: the bytes of the value of the field, and the number of cookies.
    package static let maximumFieldSize = 8190 - "Cookie: ".utf8.count
    private static let maximumMatchCount = 150

    /// The limits of libcurl on the cookies of a response: the bytes of the value of a `Set-Cookie` field and of a cookie's
    /// name and value, and the number of fields.
    private static let (maximumLineSize, maximumPairSize) = (5_000, 4_096)
    package static let maximumLineCount = 50

    /// Returns the host of a URL in the spelling that libcurl compares with the domains of cookies; `nil` if it is empty.
    package static func host(of url: URL) -> String? {
        let host = HostName(url)
        guard !host.text.isEmpty else { return nil }
        // A name with a dot at its end is another one than without.
        let isAbsolute = !host.isAddress && url.host(percentEncoded: false)?.utf8.last == UInt8(ascii: ".")
        return isAbsolute ? host.text + "." : host.text
    }

    /// Returns whether a response of a host may have set the cookie (RFC 6265 §5.1.3).
    package func mayBeSet(by host: String) -> Bool { host == domain || host.isBelow(domain) }

    /// Returns whether the cookie would overlay another one that is secure, which a response without TLS must not do
    /// (RFC 6265bis §5.7): one with the same name, for the same host or one above or below it, and for the same path or
    /// one above it. Names and paths are compared without regard to case, because some versions of libcurl, such as 7.88,
    /// replace such cookies.
    package func overlays(_ secure: Cookie) -> Bool {
        let isRelated = domain == secure.domain || domain.isBelow(secure.domain) || secure.domain.isBelow(domain)
        return secure.isSecure && name.lowercased() == secure.name.lowercased() && isRelated
            && Self.covers(secure.path.lowercased(), path.lowercased())
    }

    /// Returns the cookies that a store must evict to keep at most `limit` (RFC 6265bis §5.7): first those that have expired,
    /// then those above the limit of their domain, the secure ones last, which servers without TLS could otherwise remove, and
    /// then those that expire first.
    ///
    /// - Parameters:
    ///   - cookies: All cookies, those of a domain in the order in which they were set.
    ///   - now: The time.
    ///   - limit: The number of cookies to keep.
    ///   - domainLimit: The number of cookies of a domain of which none is evicted before those of other domains.
    package static func excess(
        of cookies: [Cookie], at now: Date = .now, keeping limit: Int, perDomain domainLimit: Int
    ) -> [Cookie] {
        guard cookies.count > limit else { return [] }
        var left = Dictionary(
            cookies.lazy.filter { !$0.isExpired(at: now) }.map { ($0.domain, 1) }, uniquingKeysWith: +)
        let ranked = cookies.enumerated().map { index, cookie -> (rank: (Int, Date, Int), cookie: Cookie) in
            if cookie.isExpired(at: now) { return ((0, now, index), cookie) }
            defer { left[cookie.domain, default: 1] -= 1 }
            let isExcess = left[cookie.domain, default: 1] > domainLimit
            if isExcess { return ((cookie.isSecure ? 2 : 1, now, index), cookie) }
            return ((3, cookie.expires ?? .distantFuture, index), cookie)
        }
        return ranked.sorted { $0.rank < $1.rank }.prefix(cookies.count - limit).map(\.cookie)
    }

    private static func covers(_ path: String, _ asked: String) -> Bool {
        let (path, asked) = (path.utf8, asked.utf8)
        let slash = UInt8(ascii: "/")
        return asked.starts(with: path)
            && (asked.count == path.count || path.last == slash || asked.dropFirst(path.count).first == slash)
    }

    /// A description with the name, domain and path, such as `Cookie(id=… for *.example.com/)`, without the value,
    /// which may be secret.
    public var description: String {
        "Cookie(\(name)=… for \(includesSubdomains ? "*." : "")\(domain)\(path))".printable
    }

    fileprivate static func normalized(_ domain: String) -> String {
        String(domain.lowercased().unicodeScalars.drop { $0 == "." })
    }
}

extension String {
    private var isAddress: Bool { contains(":") || allSatisfy { $0.isNumber || $0 == "." } }

    /// Whether a host is in a subdomain of a domain; an address is not.
    func isBelow(_ domain: String) -> Bool { hasSuffix("." + domain) && !isAddress }
}

// MARK: The Netscape cookie file format, used by curl, wget and browser tools: one line per cookie, with tabs.

extension Cookie {
    /// Parses a line; `nil` for a comment, an empty line, or a line that is not a cookie.
    package init?(netscapeLine line: some StringProtocol) {
        // Of the line breaks of Unicode, only these end a line; a value may contain the others.
        var line = Substring(Substring(line).utf8.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") })
        let isHTTPOnly = line.utf8.starts(with: Self.httpOnlyMark.utf8)
        if isHTTPOnly { line = Substring(line.utf8.dropFirst(Self.httpOnlyMark.utf8.count)) }
        guard isHTTPOnly || line.utf8.first != UInt8(ascii: "#") else { return nil }
        let parts = line.utf8.split(separator: UInt8(ascii: "\t"), maxSplits: 6, omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        // A line with six fields had an empty value whose tab an editor has trimmed.
        guard parts.count >= 6, let seconds = Self.seconds(parts[4]), !parts[0].isEmpty else { return nil }
        self.init(
            name: parts[5], value: parts.count > 6 ? parts[6] : "", domain: parts[0],
            includesSubdomains: parts[1].uppercased() == "TRUE", path: Self.path(parts[2]) ?? "/",
            isSecure: parts[3].uppercased() == "TRUE",
            isHTTPOnly: isHTTPOnly, expires: seconds == 0 ? nil : Date(timeIntervalSince1970: Double(seconds)))
    }

    /// The line for a cookie file; `nil` if the cookie contains characters that the format cannot represent, or if
    /// libcurl would not store it.
    package var netscapeLine: String? {
        guard !isRepaired, !domain.isEmpty, path.utf8.first == UInt8(ascii: "/"), !name.isEmpty,
            domain.utf8.first != UInt8(ascii: "#"), hasPrefixAttributes,
            ![domain, path, name, value].contains(where: \.hasControlCharacters),
            !name.utf8.contains(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ";") }),
            !value.utf8.contains(UInt8(ascii: ";")), name.utf8.count + value.utf8.count <= Self.maximumPairSize
        else { return nil }
        return line
    }

    /// Whether a text has a replacement character, U+FFFD, which stands for bytes that are no UTF-8.
    package var isRepaired: Bool {
        [name, value, path].contains { $0.utf8.contains(0xEF) && $0.unicodeScalars.contains("\u{FFFD}") }
    }

    /// The properties that identify the cookie in a store.
    package var identity: [String] { [name, domain, path, includesSubdomains ? "*" : ""] }

    private var line: String {
        let parts = [
            (includesSubdomains ? "." : "") + domain, includesSubdomains ? "TRUE" : "FALSE", path,
            isSecure ? "TRUE" : "FALSE", "\(seconds)", name, value,
        ]
        return (isHTTPOnly ? Self.httpOnlyMark : "") + parts.joined(separator: "\t")
    }

    /// The lines with which libcurl removes this cookie at its next lookup, those of one with a past date; it has no function
    /// to do so. None if the lines would be those of another cookie.
    ///
    /// libcurl may have stored a cookie that ``netscapeLine`` refuses: it does not check paths, since 8.12 knows prefixes in
    /// the usual spelling only, and from 8.13 to 8.17 stores cookies without a name. It compares neither values nor
    /// ``isSecure``, and takes one slash off the end of a path, until 8.17 also from `/`.
    package var endingLines: [String] {
        let separators: Set<UInt8> = [UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"), 0]
        guard !domain.isEmpty, path.utf8.first == UInt8(ascii: "/"),
            ![domain, path, name].contains(where: { $0.utf8.contains(where: separators.contains) })
        else { return [] }
        return [path, path + "/"].map { path in
            var ended = self
            (ended.path, ended.value, ended.isSecure, ended.expires) = (path, "", true, .distantPast)
            return ended.line
        }
    }

    /// Whether the cookie has the attributes that a prefix of its name requires; libcurl stores no other. See RFC 6265bis
    /// §4.1.3.
    var hasPrefixAttributes: Bool {
        let name = name.lowercased().utf8
        if name.starts(with: "__secure-".utf8) { return isSecure }
        if name.starts(with: "__host-".utf8) { return isSecure && path == "/" && !includesSubdomains }
        return true
    }

    /// The expiration date in seconds since 1970, where 0 means none; a date up to the first second of 1970 is
    /// therefore moved to the next.
    private var seconds: Int64 {
        guard let expires else { return 0 }
        return Int64(max(1, min(expires.timeIntervalSince1970, 253_402_300_799)))
    }

    /// Returns the number with which a text begins, as strtoll(3); `nil` without one, or if it is too large.
    private static func seconds(_ text: String) -> Int64? {
        let digits = text.utf8.drop { $0 == UInt8(ascii: " ") }
        let sign = digits.prefix(1).filter { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }
        return Int64(
            String(decoding: sign + digits.dropFirst(sign.count).prefix { 0x30...0x39 ~= $0 }, as: UTF8.self))
    }

    private static let httpOnlyMark = "#HttpOnly_"
}

extension Cookie {
    /// Parses the value of a `Set-Cookie` field (RFC 6265 §5.2, §5.3); `nil` for a field that must be ignored.
    ///
    /// The cookie is for the host of the URL only, unless it replaces one. Its `Domain` attribute must match the host, but
    /// does not extend the cookie to subdomains, because the public suffix list, which would limit that, is part of libcurl.
    ///
    /// - Parameters:
    ///   - text: The value of the field.
    ///   - url: The URL of the request.
    ///   - stored: Cookies that were stored before. The new one is for the same domain and its subdomains as one of them
    ///     that has not expired, has the same name and path, and includes the subdomains of the `Domain` attribute.
    ///   - now: The time at which the response was received.
    package init?(setCookie text: String, from url: URL, replacing stored: [Cookie] = [], now: Date = .now) {
        guard let host = Self.host(of: url), text.utf8.count <= Self.maximumLineSize,
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else { return nil }
        // Bytes are compared, not characters: one of several scalars may begin with a separator.
        let parts = text.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map(Self.pair)
        guard let (name, value) = parts.first, let value, !name.isEmpty,
            name.utf8.count + value.utf8.count <= Self.maximumPairSize
        else { return nil }
        self.init(name: name, value: value, domain: host, path: Self.defaultPath(of: url))
        var maximumAge: Date?
        var named = ""
        for (name, value) in parts.dropFirst() {
            let value = value ?? ""
            switch name.lowercased() {
            case "expires":
                let date = HTTPDate(ofCookie: value)
                expires = date.map { Date(timeIntervalSince1970: Double($0.seconds)) } ?? expires
            case "max-age": maximumAge = Self.end(ofAge: value, now) ?? maximumAge
            case "domain":
                if !value.isEmpty { named = String(value.lowercased().trimmingPrefix(".")) }
            case "path": path = Self.path(value) ?? Self.defaultPath(of: url)
            case "secure": isSecure = true
            case "httponly": isHTTPOnly = true
            default: break
            }
        }
        expires = maximumAge ?? expires
        guard named.isEmpty || host == named || host.isBelow(named), !isSecure || url.isHTTPS else { return nil }
        // The domain would also include the subdomains, from which the prefix `__Host-` excludes a cookie.
        includesSubdomains = !named.isEmpty
        guard hasPrefixAttributes else { return nil }
        let path = Self.compared(path)
        includesSubdomains = stored.contains {
            $0.includesSubdomains && $0.domain == named && $0.name == self.name && !$0.isExpired(at: now)
                && Self.compared($0.path) == path
        }
        if includesSubdomains { domain = named }
    }

    /// Returns the path of an attribute, which libcurl also reads in quotation marks; `nil` if it does not begin with a slash.
    private static func path(_ text: String) -> String? {
        text.utf8.first == UInt8(ascii: "/") ? text : compared(text)
    }

    /// Returns a path as libcurl before 8.18 compares it with that of a URL: without quotation marks around it and a slash at
    /// its end; `nil` if it does not begin with a slash.
    package static func compared(_ path: String) -> String? {
        let (mark, slash) = (UInt8(ascii: "\""), UInt8(ascii: "/"))
        var path = path.utf8[...]
        if path.first == mark { path.removeFirst() }
        if path.last == mark { path.removeLast() }
        guard path.first == slash else { return nil }
        if path.count > 1, path.last == slash { path.removeLast() }
        return String(decoding: path, as: UTF8.self)
    }

    /// Returns the name of the cookie that libcurl may have stored when it received a header line; `nil` for other lines.
    ///
    /// Its rules are laxer than those of ``init(setCookie:from:now:)``: it passes over empty parts at the beginning, and
    /// stores cookies of interim heads, and of heads that are not valid as a whole. Before 8.13, it also passes over parts
    /// whose name is empty.
    package static func name(setBy line: [UInt8]) -> String? {
        let field = "set-cookie:".utf8
        guard line.prefix(field.count).elementsEqual(field, by: { $0 | 0x20 == $1 }) else { return nil }
        let blanks: Set<UInt8> = [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n")]
        for part in line.dropFirst(field.count).split(separator: UInt8(ascii: ";")) {
            let name = part.prefix { $0 != UInt8(ascii: "=") }
            guard let first = name.firstIndex(where: { !blanks.contains($0) }),
                let last = name.lastIndex(where: { !blanks.contains($0) })
            else { continue }
            return String(decoding: name[first...last], as: UTF8.self)
        }
        return nil
    }

    /// Returns the name and value of an attribute, without blanks around them; no value without an equals sign.
    private static func pair(_ part: Substring.UTF8View) -> (name: String, value: String?) {
        let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            .map { Substring($0).trimmingBlanks }
        return (pair[0], pair.count > 1 ? pair[1] : nil)
    }

    /// RFC 6265 §5.1.4.
    private static func defaultPath(of url: URL) -> String {
        let path = url.path(percentEncoded: true)
        guard path.hasPrefix("/"), let last = path.unicodeScalars.lastIndex(of: "/"), last != path.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }

    private static func end(ofAge text: String, _ now: Date) -> Date? {
        guard text.wholeMatch(of: /-?[0-9]+/) != nil else { return nil }
        guard let seconds = Int64(text) else { return text.hasPrefix("-") ? .distantPast : .distantFuture }
        return seconds <= 0 ? .distantPast : now.addingTimeInterval(Double(seconds))
    }
}

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
