// SPDX-License-Identifier: MIT

package import ANHTTP
import FoundationEssentials
import Glibc

extension ProxyPolicy {
    /// Returns whether the proxy for a URL may be connected to over TLS. Exceptions from the proxy are ignored.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable. Those that libcurl reads are listed under
    ///     ENVIRONMENT in curl(1).
    package func mayUseTLS(isSecure: Bool, environment: (String) -> String?) -> Bool {
        switch self {
        case .proxy(let proxy): proxy.kind == .https
        case .environment:
            Self.variables(isSecure: isSecure).contains { environment($0)?.lowercased().hasPrefix("https:") == true }
        case .none: false
        }
    }

    /// Returns whether there may be a proxy for a URL. Exceptions from the proxy are ignored.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable.
    package func mayBeUsed(isSecure: Bool, environment: (String) -> String?) -> Bool {
        switch self {
        case .proxy: true
        case .environment: Self.variables(isSecure: isSecure).contains { environment($0)?.isEmpty == false }
        case .none: false
        }
    }

    /// Returns the proxy for a URL, with its address only; `nil` for a direct connection.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the scheme of the URL is `https` or `wss`.
    ///   - environment: Returns the value of an environment variable.
    package func proxy(isSecure: Bool, environment: (String) -> String?) -> Proxy? {
        switch self {
        case .proxy(let proxy): return proxy
        case .none: return nil
        case .environment:
            let values = Self.variables(isSecure: isSecure).lazy.compactMap(environment)
            guard let text = values.first(where: { !$0.isEmpty }) else { return nil }
            let url = URL(string: text.contains("://") ? text : "http://" + text)
            guard let url, let host = url.host(), let kind = Proxy.Kind(rawValue: url.scheme?.lowercased() ?? "") else {
                return nil
            }
            // The default ports of CURLOPT_PROXY(3).
            return Proxy(kind, host: host, port: url.port ?? (kind == .https ? 443 : 1080))
        }
    }

    /// Returns the names of the environment variables that libcurl reads.
    private static func variables(isSecure: Bool) -> [String] {
        (isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + ["all_proxy", "ALL_PROXY"]
    }
}

extension Transfer {
    /// Whether the connection may lead through a proxy over TLS, so that its TLS session does not send on the socket.
    var mayUseTLSProxy: Bool {
        exchange.options.proxy.mayUseTLS(isSecure: exchange.isSecure, environment: Self.variable)
    }

    /// The proxy of the connection; `nil` for none.
    var proxy: Proxy? {
        if case .environment = exchange.options.proxy, ProxyExceptions.ofEnvironment.contain(exchange.request.url) {
            return nil
        }
        return exchange.options.proxy.proxy(isSecure: exchange.isSecure, environment: Self.variable)
    }

    private static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}
