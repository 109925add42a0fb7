// SPDX-License-Identifier: MIT

import Glibc

/// An IPv4 or IPv6 address, without port or zone, for ``ReachabilityTarget/address(_:)``.
///
/// An IPv4-mapped IPv6 address such as `::ffff:192.0.2.1` (RFC 4291 §2.5.5.2) becomes the IPv4 address, as the system
/// routes it.
public struct IPAddress: Hashable, Sendable, LosslessStringConvertible {
    /// A version of the Internet Protocol.
    package enum Family: Hashable, Sendable, CaseIterable {
        /// IPv4, with addresses of 4 bytes (RFC 791).
        case v4
        /// IPv6, with addresses of 16 bytes (RFC 8200).
        case v6
    }

    /// The version of the Internet Protocol.
    package let family: Family
    /// The address, left-aligned: its first byte is the most significant.
    let bits: UInt128
    /// The index of the interface that leads to a link-local address, its zone (RFC 4007 §11); 0 for any.
    package var interface: Int32 = 0

    private init(family: Family, bits: UInt128) {
        self.family = family
        self.bits = bits
    }

    /// Creates an address from its bytes in network order; `nil` unless there are 4 or 16 of them.
    package init?(bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        switch bytes.count {
        case 4: self.init(family: .v4, bits: Self.bits(bytes))
        case 16 where bytes.starts(with: Self.mappedPrefix): self.init(bytes: bytes.suffix(4))
        case 16: self.init(family: .v6, bits: Self.bits(bytes))
        default: return nil
        }
    }

    /// Creates an address from its text form, such as `192.0.2.1` or `2001:db8::1`; `nil` for any other text. See
    /// inet_pton(3).
    ///
    /// Not accepted are an empty string, a host name, an address with a port, brackets, a zone such as `%eth0` or
    /// spaces, and an IPv4 address with fewer than four numbers or with leading zeros.
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

    /// The 4 or 16 bytes of the address in network order.
    package var bytes: [UInt8] {
        stride(from: 120, through: 128 - family.bitCount, by: -8).map {
            UInt8(truncatingIfNeeded: bits >> UInt128($0))
        }
    }

    /// The address in text form, without brackets; IPv6 is abbreviated and lowercase, such as `2001:db8::1`. See
    /// inet_ntop(3).
    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard
            unsafe inet_ntop(family == .v4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil
        else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    private static func bits(_ bytes: [UInt8]) -> UInt128 {
        bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) } << UInt128(128 - 8 * bytes.count)
    }
}

extension IPAddress.Family {
    /// The number of bits of an address.
    var bitCount: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }
}
