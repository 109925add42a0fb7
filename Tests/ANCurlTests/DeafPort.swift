// SPDX-License-Identifier: MIT

import Glibc
import Testing

/// A port of this machine that is taken, and where no connection can be made or nothing is ever sent.
final class DeafPort: Sendable {
    let number: Int
    private let descriptors: [Int32]

    /// The reaction of the port to a connection.
    enum Manner {
        /// It is refused.
        case closed
        /// It is neither accepted nor refused, because the queue of connections is full. See listen(2).
        case full
        /// It is accepted by the system, but nothing is sent. See ``received()``.
        case silent
    }

    /// - Parameters:
    ///   - end: The last number of the address, which begins with 127.0.0.
    ///   - port: The port; by default one that is free.
    init(_ manner: Manner, end: UInt8 = 1, port: Int = 0) throws {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = (INADDR_LOOPBACK & 0xFFFF_FF00 | UInt32(end)).bigEndian
        name.sin_port = UInt16(port).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = Self.makeSocket()
        var descriptors = [socket]
        unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(socket, address, size)
                unsafe getsockname(socket, address, &size)
                guard manner != .closed else { return }
                listen(socket, 0)
                guard manner == .full else { return }
                // A backlog of 0 takes one connection; the others wait for the queue.
                for _ in 0..<4 {
                    let filler = Self.makeSocket()
                    unsafe _ = connect(filler, address, size)
                    descriptors.append(filler)
                }
            }
        }
        self.descriptors = descriptors
        number = Int(UInt16(bigEndian: name.sin_port))
        try #require(number > 0)
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    /// Returns the first bytes that arrive on the first connection to a silent port, which is then closed; none if it is
    /// closed before. Blocks the thread.
    func received() -> [UInt8] {
        Self.wait(for: descriptors[0])
        let connection = accept(descriptors[0], nil, nil)
        defer { close(connection) }
        Self.wait(for: connection)
        return unsafe [UInt8](unsafeUninitializedCapacity: 100) { buffer, count in
            count = unsafe max(0, recv(connection, buffer.baseAddress, buffer.count, 0))
        }
    }

    private static func wait(for descriptor: Int32) {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        unsafe _ = poll(&entry, 1, 30_000)
    }

    private static func makeSocket() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }
}
