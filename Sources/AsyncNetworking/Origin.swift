// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// The origin of a URL: scheme, host and port (RFC 6454 §4). The host is normalized; a missing port is the scheme's
/// default. The schemes `ws` and `wss` count as `http` and `https`, with which their connections begin.
struct Origin: Hashable, Sendable, CustomStringConvertible {
    let scheme: String
    let host: String
    let port: Int

    init(_ url: URL) {
        scheme =
            switch url.scheme?.lowercased() ?? "" {
            case "ws": "http"
            case "wss": "https"
            case let scheme: scheme
            }
        host = HostName(url).zonedText
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    var description: String { "\(scheme)://\(host):\(port)" }
}
