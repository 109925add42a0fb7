// SPDX-License-Identifier: MIT

import Glibc

/// An IPv4 or IPv6 address, without port or zone.
///
/// An IPv4 address that is written as IPv6, `::ffff:192.0.2.1`, is the IPv4 address: that is how the system routes it.
public struct IPAddress: Hashable, Sendable, LosslessStringConvertible {
    /// The version of the protocol.
    public enum Family: Hashable, Sendable, CaseIterable {
        /// 4 bytes, RFC 791.
        case v4
        /// 16 bytes, RFC 8200.
        case v6
    }

    /// The version of the protocol.
    public let family: Family
    /// The address in network order; the first byte is the highest.
    let bits: UInt128

    private init(family: Family, bits: UInt128) {
        self.family = family
        self.bits = bits
    }

    /// Creates an address from its bytes in network order: 4 or 16 of them; nil for any other number.
    public init?(bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        switch bytes.count {
        case 4: self.init(family: .v4, bits: Self.bits(bytes))
        case 16 where bytes.starts(with: Self.mappedPrefix): self.init(bytes: bytes.suffix(4))
        case 16: self.init(family: .v6, bits: Self.bits(bytes))
        default: return nil
        }
    }

    /// Creates an address from its text form, such as `192.0.2.1` or `2001:db8::1`; nil for anything else. See inet_pton(3).
    public init?(_ description: String) {
        // A C string would end at the NUL.
        guard !description.utf8.contains(0) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        if unsafe inet_pton(AF_INET, description, &bytes) == 1 {
            self.init(bytes: bytes.prefix(4))
        } else if unsafe inet_pton(AF_INET6, description, &bytes) == 1 {
            self.init(bytes: bytes)
        } else {
            return nil
        }
    }

    /// The bytes in network order: 4 or 16 of them.
    public var bytes: [UInt8] {
        stride(from: 120, through: 128 - family.bitCount, by: -8).map {
            UInt8(truncatingIfNeeded: bits >> UInt128($0))
        }
    }

    /// The text form. See inet_ntop(3).
    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard
            unsafe inet_ntop(family == .v4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil
        else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Whether the address means something on one link only: 169.254.0.0/16, fe80::/10.
    var isLinkLocal: Bool {
        switch family {
        case .v4: bits >> 112 == 0xA9FE
        case .v6: bits >> 118 == 0xFE80 >> 6
        }
    }

    /// The address of all zeros.
    static func zero(_ family: Family) -> IPAddress {
        IPAddress(family: family, bits: 0)
    }

    /// The first address of the network with this many leading bits.
    func masked(to length: Int) -> IPAddress {
        IPAddress(family: family, bits: length == 0 ? 0 : bits & ~UInt128(0) << UInt128(128 - length))
    }

    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    private static func bits(_ bytes: [UInt8]) -> UInt128 {
        bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) } << UInt128(128 - 8 * bytes.count)
    }
}

extension IPAddress.Family {
    /// How many bits an address has.
    var bitCount: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }
}

/// A network: the addresses that begin with the same bits.
struct Prefix: Hashable, Sendable, CustomStringConvertible {
    /// The first address of the network.
    let address: IPAddress
    /// How many leading bits are the network's.
    let length: Int

    /// Creates the network of an address; nil when it has not that many bits.
    init?(_ address: IPAddress, length: Int) {
        guard (0...address.family.bitCount).contains(length) else { return nil }
        self.address = address.masked(to: length)
        self.length = length
    }

    /// Whether the network has an address.
    func contains(_ other: IPAddress) -> Bool {
        other.family == address.family && other.masked(to: length) == address
    }

    var description: String { "\(address)/\(length)" }
}
