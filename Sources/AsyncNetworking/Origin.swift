// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// Where a URL points, as far as trust goes: scheme, host and port, RFC 6454 §4. The host has its usual spelling.
struct Origin: Hashable, Sendable, CustomStringConvertible {
    let scheme: String
    let host: String
    let port: Int

    init(_ url: URL) {
        scheme = url.scheme?.lowercased() ?? ""
        host = HostName(url).zonedText
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    var description: String { "\(scheme)://\(host):\(port)" }
}
