// SPDX-License-Identifier: MIT

package import ANHTTP
import CCurl
import FoundationEssentials
import Glibc
import HTTPTypes

extension ProxyPolicy {
    /// Returns whether the proxy for a URL may be connected to over TLS. Exceptions from the proxy are ignored.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable. Those that libcurl reads are listed under
    ///     ENVIRONMENT in curl(1).
    package func mayUseTLS(isSecure: Bool, environment: (StaticString) -> String?) -> Bool {
        switch self {
        case .proxy(let proxy): proxy.kind == .https
        case .environment:
            Self.value(isSecure: isSecure, environment)?.lowercased().hasPrefix("https:") == true
        case .none: false
        }
    }

    /// Returns whether there may be a proxy for a URL. Exceptions from the proxy are ignored.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable.
    package func mayBeUsed(isSecure: Bool, environment: (StaticString) -> String?) -> Bool {
        switch self {
        case .proxy: true
        case .environment: Self.value(isSecure: isSecure, environment) != nil
        case .none: false
        }
    }

    /// Returns the proxy for a URL, with its address only; `nil` for a direct connection.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable.
    package func proxy(isSecure: Bool, environment: (StaticString) -> String?) -> Proxy? {
        switch self {
        case .proxy(let proxy): return proxy
        case .none: return nil
        case .environment:
            guard let text = Self.value(isSecure: isSecure, environment) else { return nil }
            let url = URL(string: text.contains("://") ? text : "http://" + text)
            guard let url, let host = url.host(), let kind = Proxy.Kind(rawValue: url.scheme?.lowercased() ?? "") else {
                return nil
            }
            // The default ports of CURLOPT_PROXY(3).
            return Proxy(kind, host: host, port: url.port ?? (kind == .https ? 443 : 1080))
        }
    }

    /// Returns the proxy for a URL, with its address only if the environment names it; `nil` for a direct connection.
    func proxy(for url: URL) -> Proxy? {
        mayBeUsed(for: url) ? proxy(isSecure: url.isHTTPS, environment: Self.variable) : nil
    }

    /// Returns the proxy of the environment as libcurl reads it, without user information, which libcurl would use in place
    /// of a credential; `nil` if the policy is another one, or the proxy has none.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable.
    package func addressWithoutUser(isSecure: Bool, environment: (StaticString) -> String?) -> String? {
        guard case .environment = self, let text = Self.value(isSecure: isSecure, environment) else { return nil }
        let scalars = text.unicodeScalars
        let start = scalars.firstRange(of: "://".unicodeScalars)?.upperBound ?? scalars.startIndex
        let end = scalars[start...].firstIndex { "/?#".unicodeScalars.contains($0) } ?? scalars.endIndex
        guard let at = scalars[start..<end].lastIndex(of: "@") else { return nil }
        return "\(text[..<start])\(text[scalars.index(after: at)...])"
    }

    /// Returns whether the proxy for a URL may be connected to over TLS.
    func mayUseTLS(for url: URL) -> Bool {
        mayBeUsed(for: url) && mayUseTLS(isSecure: url.isHTTPS, environment: Self.variable)
    }

    /// Returns whether there may be a proxy for a URL.
    func mayBeUsed(for url: URL) -> Bool {
        if case .environment = self, !ccurl_environment_names_proxy() { return false }
        return mayBeUsed(isSecure: url.isHTTPS, environment: Self.variable) && !exceptions.contain(url)
    }

    private var exceptions: ProxyExceptions {
        switch self {
        case .none: ProxyExceptions([])
        case .environment: ProxyExceptions(environment: Self.variable)
        case .proxy(let proxy): ProxyExceptions(proxy.bypass)
        }
    }

    static func variable(_ name: StaticString) -> String? {
        let name = unsafe UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
        return unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// Returns the proxy that the environment names: as for libcurl, by the first variable that is not empty.
    private static func value(isSecure: Bool, _ environment: (StaticString) -> String?) -> String? {
        (isSecure ? secureVariables : plainVariables).lazy.compactMap(environment).first { !$0.isEmpty }
    }

    private static let secureVariables: [StaticString] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    private static let plainVariables: [StaticString] = ["http_proxy", "all_proxy", "ALL_PROXY"]
}

/// How a request is sent through an HTTP proxy.
struct ProxyUse {
    let proxy: Proxy
    /// Whether the proxy opens a tunnel to the server, instead of forwarding the request.
    let isTunnel: Bool

    /// Whether connections to the proxy may be authenticated as a whole, as those of
    /// ``TransportAuthentication/needsOwnConnection``.
    var needsOwnConnection: Bool { !isTunnel && proxy.credential?.schemes?.contains(.negotiate) == true }
}

extension TransferOptions {
    /// How a request is sent through an HTTP proxy; `nil` without one.
    func proxyUse(for request: Request) -> ProxyUse? {
        let url = request.url
        guard connection.unixSocketPath == nil, let proxy = proxy.proxy(for: url),
            proxy.kind == .http || proxy.kind == .https
        else { return nil }
        // libcurl opens one to another host than that of the URL, too; see also ``EasyHandle/applyUpgrade()``.
        let isTunnel = url.isHTTPS || request.webSocketOptions != nil || connection.replaceServer(of: url)
        return ProxyUse(proxy: proxy, isTunnel: isTunnel)
    }

    /// Whether a request is sent to the host of its URL itself: neither to a proxy or a socket, nor to another host.
    func reachesHost(of url: URL) -> Bool {
        connection.unixSocketPath == nil && !connection.replaceServer(of: url) && !proxy.mayBeUsed(for: url)
    }
}

extension SharedTransferOptions {
    /// Returns the options without the credential for an HTTP proxy if the request has a `Proxy-Authorization` field:
    /// libcurl would send both, except by Basic.
    func withoutReplacedCredential(for request: borrowing Request) -> SharedTransferOptions {
        guard value.answersProxyChallenges, case .proxy(var proxy) = value.proxy,
            proxy.kind == .http || proxy.kind == .https, request.headers.contains(.proxyAuthorization)
        else { return self }
        proxy.credential = nil
        var value = value
        value.proxy = .proxy(proxy)
        return SharedTransferOptions(value)
    }
}

extension ConnectionOptions {
    /// Whether the first override for the host and port of a URL names others.
    fileprivate func replaceServer(of url: URL) -> Bool {
        guard !hostOverrides.isEmpty else { return false }
        let (host, port) = (HostName(url), url.port ?? (url.isHTTPS ? 443 : 80))
        let first = hostOverrides.first { ($0.host.isEmpty || HostName($0.host) == host) && $0.port == port }
        guard let first else { return false }
        return first.addressPort != port || !first.address.isEmpty && HostName(first.address) != host
    }
}

extension Exchange {
    /// Whether the connection may lead through a proxy over TLS.
    var mayUseTLSProxy: Bool {
        mayUseProxy && options.proxy.mayUseTLS(isSecure: isSecure, environment: ProxyPolicy.variable)
    }
}

extension Transfer {
    /// Whether the connection may lead through a proxy over TLS, so that its TLS session does not send on the socket.
    var mayUseTLSProxy: Bool { exchange.mayUseTLSProxy }

    /// The proxy of the connection; `nil` for none.
    var proxy: Proxy? { exchange.options.proxy.proxy(for: exchange.request.url) }
}

/// The hosts that are contacted without a proxy, from `Proxy.bypass` or the variable `no_proxy`.
///
/// libcurl's own matching, CURLOPT_NOPROXY(3), knows no `fd00::/8` and no brackets, compares addresses as text, and has
/// neither wildcards nor ports.
package struct ProxyExceptions {
    private let entries: [String]

    /// Creates the list of entries: a name, which includes its subdomains, with or without `.` or `*.` before it; an
    /// address, a CIDR block, or `*`; a name or address may be followed by a port, and an IPv6 address then has
    /// brackets.
    package init(_ entries: [String]) {
        self.entries = entries
    }

    /// Creates the list that the environment names. As libcurl does, ignores variables that are empty.
    ///
    /// - Parameter environment: Returns the value of an environment variable.
    package init(environment: (StaticString) -> String?) {
        let list = ["no_proxy", "NO_PROXY"].lazy.compactMap(environment).first { !$0.isEmpty } ?? ""
        self.init(list.unicodeScalars.split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init))
    }

    /// Returns whether a host is contacted without the proxy.
    package func contain(_ host: HostName, port: Int) -> Bool {
        entries.contains { Self.matches($0.trimmingBlanks, host, port) }
    }

    /// Returns whether the host of a URL is contacted without the proxy.
    func contain(_ url: URL) -> Bool {
        !entries.isEmpty && contain(HostName(url), port: url.port ?? (url.isHTTPS ? 443 : 80))
    }

    private static func matches(_ entry: String, _ host: HostName, _ port: Int) -> Bool {
        if entry == "*" { return true }
        if let slash = entry.unicodeScalars.lastIndex(of: "/") {
            return isIn(block: String(entry[..<slash]), size: entry[entry.unicodeScalars.index(after: slash)...], host)
        }
        var name = entry
        if let (before, number) = splitPort(entry) {
            guard number == port else { return false }
            name = before
        }
        if name.hasPrefix("*.") { name.removeFirst() }
        if name.hasPrefix(".") { name.removeFirst() }
        let other = HostName(name)
        guard !other.text.isEmpty else { return false }
        if other.isAddress { return host.text == other.text && (other.zone == nil || other.zone == host.zone) }
        return host.text == other.text || !host.isAddress && host.text.hasSuffix("." + other.text)
    }

    /// Returns the part before a port, and the port; `nil` for an entry without one.
    private static func splitPort(_ entry: String) -> (String, Int)? {
        guard let colon = entry.unicodeScalars.lastIndex(of: ":"),
            let port = Int(entry[entry.unicodeScalars.index(after: colon)...])
        else { return nil }
        let before = entry[..<colon]
        // The colons of an IPv6 address without brackets are no separators.
        return before.hasSuffix("]") || !before.contains(":") ? (String(before), port) : nil
    }

    private static func isIn(block: String, size: Substring, _ host: HostName) -> Bool {
        guard host.isAddress, let address = bytes(of: host), let first = bytes(of: HostName(block)),
            address.count == first.count, let size = Int(size), 0...(8 * address.count) ~= size
        else { return false }
        return (0..<size).allSatisfy { (address[$0 / 8] ^ first[$0 / 8]) & (0x80 >> UInt8($0 % 8)) == 0 }
    }

    /// Returns the bytes of an address in network order; `nil` for a name.
    private static func bytes(of host: HostName) -> [UInt8]? {
        let isVersion6 = host.text.contains(":")
        var bytes = [UInt8](repeating: 0, count: isVersion6 ? 16 : 4)
        return unsafe inet_pton(isVersion6 ? AF_INET6 : AF_INET, host.text, &bytes) == 1 ? bytes : nil
    }
}
