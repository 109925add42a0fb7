// SPDX-License-Identifier: MIT

package import FoundationEssentials

extension Cookie {
    /// Parses the value of a `Set-Cookie` field (RFC 6265 §5.2, §5.3); `nil` for a field that must be ignored.
    ///
    /// The cookie is for the host of the URL only. Its `Domain` attribute must match the host, but does not extend the
    /// cookie to subdomains, because the public suffix list, which would limit that, is part of libcurl.
    ///
    /// - Parameters:
    ///   - text: The value of the field.
    ///   - url: The URL of the request.
    ///   - now: The time at which the response was received.
    package init?(setCookie text: String, from url: URL, now: Date = .now) {
        guard let host = url.host()?.lowercased(), text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else { return nil }
        // Bytes are compared, not characters: one of several scalars may begin with a separator.
        let parts = text.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map(Self.pair)
        guard let (name, value) = parts.first, let value, !name.isEmpty else { return nil }
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
            case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : Self.defaultPath(of: url)
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
        includesSubdomains = false
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
        guard path.hasPrefix("/"), let last = path.lastIndex(of: "/"), last != path.startIndex else { return "/" }
        return String(path[..<last])
    }

    private static func end(ofAge text: String, _ now: Date) -> Date? {
        guard text.wholeMatch(of: /-?[0-9]+/) != nil else { return nil }
        guard let seconds = Int64(text) else { return text.hasPrefix("-") ? .distantPast : .distantFuture }
        return seconds <= 0 ? .distantPast : now.addingTimeInterval(Double(seconds))
    }
}
