// SPDX-License-Identifier: MIT

import FoundationEssentials
import Glibc

/// The host of a URL as libcurl understands it: one spelling for each host.
struct HostName: Hashable {
    /// The name in lower case without a dot at its end, or the usual form of an address.
    let text: String
    /// Whether it is an address.
    let isAddress: Bool

    /// Whether it is a name in another script, which libcurl translates by itself.
    var isInternational: Bool { !text.utf8.allSatisfy { $0 < 0x80 } }

    init(_ url: URL) {
        self.init(url.host(percentEncoded: false) ?? "")
    }

    init(_ host: String) {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        if bare.contains(":") {
            let address = String(bare.prefix { $0 != "%" })
            text = Self.usualIPv6(address) ?? address
            isAddress = true
        } else {
            var name = bare.lowercased()
            if name.hasSuffix(".") { name.removeLast() }
            let address = Self.usualIPv4(name)
            text = address ?? name
            isAddress = address != nil
        }
    }

    /// libcurl takes all forms that inet_aton(3) does, such as `127.1`.
    private static func usualIPv4(_ text: String) -> String? {
        guard let last = text.utf8.last, last < UInt8(ascii: "g"),
            text.utf8.first.map({ $0 < UInt8(ascii: ":") }) == true
        else { return nil }
        var address = in_addr()
        guard unsafe inet_aton(text, &address) != 0 else { return nil }
        return unsafe printed(AF_INET, &address)
    }

    private static func usualIPv6(_ text: String) -> String? {
        var address = in6_addr()
        guard unsafe inet_pton(AF_INET6, text, &address) == 1 else { return nil }
        return unsafe printed(AF_INET6, &address)
    }

    /// An address in its usual form. See inet_ntop(3).
    static func printed(_ family: Int32, _ address: UnsafeRawPointer) -> String? {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            return unsafe inet_ntop(family, address, start, socklen_t(buffer.count)).map { unsafe String(cString: $0) }
        }
    }
}
