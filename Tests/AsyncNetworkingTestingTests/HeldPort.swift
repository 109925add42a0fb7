// SPDX-License-Identifier: MIT

import Glibc
import Testing

/// A free port that the system does not assign automatically while this object exists; listening on it by its number is
/// possible.
final class HeldPort: Sendable {
    let number: UInt16
    private let descriptor: Int32

    init() throws {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var on: Int32 = 1
        unsafe setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(socket, address, size)
                unsafe getsockname(socket, address, &size)
            }
        }
        descriptor = socket
        number = UInt16(bigEndian: name.sin_port)
        try #require(number > 0)
    }

    deinit {
        close(descriptor)
    }
}
