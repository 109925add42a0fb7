// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// The numeric address and the port of one end of a socket.
public struct SocketEndpoint: Hashable, Sendable {
    /// The IPv4 or IPv6 address in text form, without brackets; a link-local IPv6 address has a zone, such as
    /// `fe80::1%eth0`.
    public let host: String
    /// The port number; 0 for a socket that is not bound.
    public let port: Int

    /// Creates the numeric form of a socket address. See getnameinfo(3).
    ///
    /// - Parameters:
    ///   - address: A `sockaddr`, of which at least the family is readable; it is used only during the call.
    ///   - size: The size of the address in bytes.
    /// - Returns: `nil` if the address is not one of IPv4 or IPv6, such as that of a Unix-domain socket, or if the size
    ///   is too small for its family.
    public init?(_ address: UnsafeRawPointer, size: UInt32) {
        let address = unsafe address.assumingMemoryBound(to: sockaddr.self)
        guard unsafe address.pointee.sa_family != sa_family_t(AF_UNIX) else { return nil }
        let numbers = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 96) { buffer -> [String]? in
            guard let host = buffer.baseAddress else { return nil }
            let port = unsafe host + 64
            let flags = NI_NUMERICHOST | NI_NUMERICSERV
            guard unsafe getnameinfo(address, size, host, 64, port, 32, flags) == 0 else { return nil }
            return unsafe [String(cString: host), String(cString: port)]
        }
        guard let numbers, let port = Int(numbers[1]) else { return nil }
        host = numbers[0]
        self.port = port
    }

    /// Creates the address and port that a socket is bound to: the unspecified address and port 0 if it is not bound.
    ///
    /// - Returns: `nil` if getsockname(2) fails, for example because the descriptor is not a socket, or if the address
    ///   has no port, as with a Unix-domain socket.
    public init?(localEndOf socket: Int32) {
        guard var name = unsafe Self.name(of: socket, by: { unsafe getsockname($0, $1, $2) }) else { return nil }
        unsafe self.init(&name.address, size: name.size)
    }

    /// Returns whether a socket is connected to a peer; `false` also while a TCP connection is being established, and
    /// for a descriptor that is not a socket. See getpeername(2).
    public static func isConnected(_ socket: Int32) -> Bool {
        unsafe name(of: socket, by: { unsafe getpeername($0, $1, $2) }) != nil
    }

    /// The error with which the system refuses to open a socket, such as `EMFILE`; `nil` if it opens one.
    public static var shortage: Int32? {
        let number = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return errno }
        close(number)
        return nil
    }

    private static func name(
        of socket: Int32, by call: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> (address: sockaddr_storage, size: socklen_t)? {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let status = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe call(socket, $0, &size) }
        }
        return status == 0 ? (address, size) : nil
    }
}
