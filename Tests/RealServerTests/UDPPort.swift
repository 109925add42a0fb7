// SPDX-License-Identifier: MIT

import Glibc
import Testing

/// A UDP port of 127.0.0.1 that receives datagrams and never answers, like a network that drops them.
final class UDPPort: Sendable {
    let number: Int
    private let descriptor: Int32

    /// Binds a port.
    ///
    /// - Parameter number: The number; by default any that is free.
    init(_ number: Int = 0) throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = in_port_t(number).bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                let status = unsafe bind(socket, address, size)
                unsafe getsockname(socket, address, &size)
                return status
            }
        }
        descriptor = socket
        self.number = Int(in_port_t(bigEndian: name.sin_port))
        try #require(status == 0)
    }

    deinit {
        close(descriptor)
    }
}
