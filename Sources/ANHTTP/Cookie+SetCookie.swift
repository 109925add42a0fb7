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
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        guard let pair = parts.first, let equals = pair.firstIndex(of: "=") else { return nil }
        let name = pair[..<equals].trimmingBlanks
        guard !name.isEmpty else { return nil }
        self.init(
            name: name, value: pair[pair.index(after: equals)...].trimmingBlanks, domain: host,
            path: Self.defaultPath(of: url))
        var maximumAge: Date?
        var namesDomain = false
        for part in parts.dropFirst() {
            let attribute = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let value = attribute.count > 1 ? attribute[1].trimmingBlanks : ""
            switch attribute[0].trimmingBlanks.lowercased() {
            case "expires":
                let date = HTTPDate(ofCookie: value)
                expires = date.map { Date(timeIntervalSince1970: Double($0.seconds)) } ?? expires
            case "max-age": maximumAge = Self.end(ofAge: value, now) ?? maximumAge
            case "domain":
                let domain = value.lowercased().drop { $0 == "." }
                guard domain.isEmpty || host == domain || host.isBelow(String(domain)) else { return nil }
                if !domain.isEmpty { namesDomain = true }
            case "path": path = value.hasPrefix("/") ? value : Self.defaultPath(of: url)
            case "secure": isSecure = true
            case "httponly": isHTTPOnly = true
            default: break
            }
        }
        expires = maximumAge ?? expires
        guard !isSecure || url.isHTTPS else { return nil }
        // The domain would also include the subdomains, from which the prefix `__Host-` excludes a cookie.
        includesSubdomains = namesDomain
        guard hasPrefixAttributes else { return nil }
        includesSubdomains = false
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
