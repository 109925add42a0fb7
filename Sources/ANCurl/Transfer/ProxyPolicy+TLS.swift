// SPDX-License-Identifier: MIT

package import ANHTTP
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

    /// Returns the names of the environment variables that libcurl reads.
    private static func variables(isSecure: Bool) -> [String] {
        (isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]) + ["all_proxy", "ALL_PROXY"]
    }
}

extension Transfer {
    /// Whether the connection may lead through a proxy over TLS, so that its TLS session does not send on the socket.
    var mayUseTLSProxy: Bool {
        exchange.options.proxy.mayUseTLS(isSecure: exchange.isSecure) { name in
            unsafe getenv(name).map { unsafe String(cString: $0) }
        }
    }
}
