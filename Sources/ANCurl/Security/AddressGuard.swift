// SPDX-License-Identifier: MIT

package import ANHTTP
import Glibc

/// The restriction on addresses given by an ``ANHTTP/AddressPolicy``. See RFC 6890 and the IANA registries of
/// special-purpose addresses.
package struct AddressGuard: Equatable {
    private let exceptions: [Network]

    /// Creates the guard for a policy; `nil` if the policy allows all addresses.
    ///
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` for an exception that is neither an address nor a network.
    package init?(_ policy: AddressPolicy) throws(TransportError) {
        guard case .publicOnly(let texts) = policy else { return nil }
        var exceptions: [Network] = []
        for text in texts {
            guard let network = Network(text) else {
                throw TransportError(.invalidRequest(.option("“\(text)” is not an address or a network.")))
            }
            exceptions.append(network)
        }
        self.exceptions = exceptions
    }

    /// Whether a connection to an address, in its text form, is allowed; `false` if the text is not an address.
    package func allows(_ text: String) -> Bool {
        guard let bits = Network.bits(of: text) else { return false }
        return Self.isPublic(bits) || exceptions.contains { $0.contains(bits) }
    }

    private static func isPublic(_ bits: UInt128) -> Bool {
        for network in embedding where network.prefix.contains(bits) {
            return isPublicIPv4(UInt32(truncatingIfNeeded: bits >> UInt128(network.shift)))
        }
        // Only 2000::/3 has been allocated for global unicast.
        return bits >> 125 == 0b001 && !reserved.contains { $0.contains(bits) }
    }

    private static func isPublicIPv4(_ address: UInt32) -> Bool {
        let bits = UInt128(address) | mapped
        return !reservedIPv4.contains { $0.contains(bits) }
    }

    /// The IPv6 prefixes that embed an IPv4 address, with the number of bits after the embedded address.
    private static let embedding: [(prefix: Network, shift: Int)] = [
        ("::ffff:0.0.0.0/96", 0), ("64:ff9b::/96", 0), ("2002::/16", 80),
    ].compactMap { text, shift in Network(text).map { ($0, shift) } }

    /// The parts of 2000::/3 that are not public: protocol assignments, which include Teredo, and documentation.
    private static let reserved = ["2001::/23", "2001:db8::/32", "3fff::/20"].compactMap(Network.init)

    private static let reservedIPv4 = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
    ].compactMap(Network.init)

    /// The upper bits of an IPv4-mapped IPv6 address.
    fileprivate static let mapped: UInt128 = 0xFFFF << 32
}

/// A range of addresses with a common prefix; IPv4 addresses are mapped into IPv6.
private struct Network: Equatable {
    let first: UInt128
    let length: Int

    /// Creates a network from `address` or `address/length`.
    init?(_ text: String) {
        let parts = text.split(at: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let address = parts.first, let bits = Self.bits(of: address) else { return nil }
        let offset = address.contains(":") ? 0 : 96
        var length = 128
        if parts.count > 1 {
            guard let number = Int(digits: parts[1]), (0...(128 - offset)).contains(number) else { return nil }
            length = number + offset
        }
        self.length = length
        first = Self.masked(bits, length)
    }

    func contains(_ bits: UInt128) -> Bool {
        Self.masked(bits, length) == first
    }

    private static func masked(_ bits: UInt128, _ length: Int) -> UInt128 {
        length == 0 ? 0 : bits & ~UInt128(0) << UInt128(128 - length)
    }

    /// Returns the bits of an address in its text form, ignoring the zone of a link-local address; `nil` if the text is
    /// not an address. See inet_pton(3).
    static func bits(of text: String) -> UInt128? {
        let text = String(text.unicodeScalars.prefix { $0 != "%" })
        // inet_pton(3) would stop at the NUL.
        guard !text.utf8.contains(0) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        if unsafe inet_pton(AF_INET, text, &bytes) == 1 {
            return bytes.prefix(4).reduce(UInt128(0)) { $0 << 8 | UInt128($1) } | AddressGuard.mapped
        }
        guard unsafe inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
        return bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
    }
}
