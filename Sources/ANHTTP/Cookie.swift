// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A cookie, RFC 6265. Its description never shows the value.
public struct Cookie: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name.
    public var name: String
    /// The value.
    public var value: String
    /// The host that it is for, in lower case and without a dot at its start.
    public var domain: String
    /// Whether hosts below the domain get it too.
    public var includesSubdomains: Bool
    /// The path that it is for, and all below it.
    public var path: String
    /// Whether it goes over https only.
    public var isSecure: Bool
    /// Whether scripts of a page may not see it; of no meaning to a client without scripts, and kept for others.
    public var isHTTPOnly: Bool
    /// When it ends, to the second; nil for one of a session, which ends with the program unless it is saved.
    public var expires: Date?

    /// Creates a cookie for one host and all its paths.
    public init(
        name: String, value: String, domain: String, includesSubdomains: Bool = false, path: String = "/",
        isSecure: Bool = false, isHTTPOnly: Bool = false, expires: Date? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = Self.normalized(domain)
        self.includesSubdomains = includesSubdomains
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
    }

    /// Whether it has ended by then.
    public func isExpired(at date: Date = .now) -> Bool {
        expires.map { $0 <= date } ?? false
    }

    /// Whether a request to this URL gets it, RFC 6265 §5.1.3 and §5.1.4.
    public func matches(_ url: URL) -> Bool {
        guard let host = url.host()?.lowercased() else { return false }
        let isInDomain = host == domain || includesSubdomains && host.hasSuffix("." + domain) && !host.isAddress
        let asked = url.path(percentEncoded: true)
        let isBelow = asked.hasPrefix(path) && (path.hasSuffix("/") || asked.dropFirst(path.count).first == "/")
        return isInDomain && (asked == path || isBelow || path == "/") && (!isSecure || url.scheme == "https")
    }

    /// The name and where it goes, without the value.
    public var description: String { "Cookie(\(name)=… for \(includesSubdomains ? "*." : "")\(domain)\(path))" }
    /// The same as the description.
    public var debugDescription: String { description }
    /// A mirror without the value.
    public var customMirror: Mirror { Mirror(self, children: ["cookie": description]) }

    fileprivate static func normalized(_ domain: String) -> String {
        String(domain.lowercased().drop { $0 == "." })
    }
}

extension String {
    fileprivate var isAddress: Bool { contains(":") || allSatisfy { $0.isNumber || $0 == "." } }
}

// MARK: The file format of Netscape, which curl, wget and browsers' tools share: a line for each cookie, with tabs.

extension Cookie {
    /// Reads a line; nil for a comment, an empty line, or one that is no cookie.
    package init?(netscapeLine line: some StringProtocol) {
        var line = Substring(line).prefix { !$0.isNewline }
        let isHTTPOnly = line.hasPrefix(Self.httpOnlyMark)
        if isHTTPOnly { line = line.dropFirst(Self.httpOnlyMark.count) } else if line.hasPrefix("#") { return nil }
        let parts = line.split(maxSplits: 6, omittingEmptySubsequences: false) { $0 == "\t" }.map(String.init)
        // A line without an empty value's tab is one that an editor has trimmed.
        guard parts.count >= 6, let seconds = Int64(parts[4]), !parts[0].isEmpty, !parts[5].isEmpty else { return nil }
        self.init(
            name: parts[5], value: parts.count > 6 ? parts[6] : "", domain: parts[0],
            includesSubdomains: parts[1] == "TRUE", path: parts[2], isSecure: parts[3] == "TRUE",
            isHTTPOnly: isHTTPOnly, expires: seconds == 0 ? nil : Date(timeIntervalSince1970: Double(seconds)))
    }

    /// The line; nil where a part has what a line cannot carry.
    package var netscapeLine: String? {
        let parts = [
            (includesSubdomains ? "." : "") + domain, includesSubdomains ? "TRUE" : "FALSE", path,
            isSecure ? "TRUE" : "FALSE", "\(seconds)", name, value,
        ]
        guard !domain.isEmpty, path.hasPrefix("/"), !name.isEmpty, !domain.hasPrefix("#"),
            parts.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }),
            !name.contains(where: { $0 == "=" || $0 == ";" }), !value.contains(";")
        else { return nil }
        return (isHTTPOnly ? Self.httpOnlyMark : "") + parts.joined(separator: "\t")
    }

    /// 0 stands for no end, so an end at or before the first second of 1970 is the second after it.
    private var seconds: Int64 {
        guard let expires else { return 0 }
        return Int64(max(1, min(expires.timeIntervalSince1970, 253_402_300_799)))
    }

    private static let httpOnlyMark = "#HttpOnly_"
}
