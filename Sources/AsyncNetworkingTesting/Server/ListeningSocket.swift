// SPDX-License-Identifier: MIT

import ANSystem
import Glibc

/// A listening socket; a Unix-domain socket deletes its file when it is released.
final class ListeningSocket: Sendable {
    let descriptor: FileDescriptor
    let endpoint: StubServer.Endpoint

    init(_ options: StubServer.Options) throws(SystemError) {
        switch options.address {
        case .ipv4:
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = options.port.bigEndian
            name.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            descriptor = try Self.listen(AF_INET, at: &name, options)
            try Self.readName(of: descriptor, into: &name)
            endpoint = .tcp(host: "127.0.0.1", port: Int(UInt16(bigEndian: name.sin_port)))
        case .ipv6:
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = options.port.bigEndian
            name.sin6_addr = in6addr_loopback
            descriptor = try Self.listen(AF_INET6, at: &name, options)
            try Self.readName(of: descriptor, into: &name)
            endpoint = .tcp(host: "::1", port: Int(UInt16(bigEndian: name.sin6_port)))
        case .unix(let path):
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            let bytes = Array(path.utf8)
            // One byte is needed for the terminating NUL. See unix(7).
            guard bytes.count < MemoryLayout.size(ofValue: name.sun_path) else {
                throw SystemError(call: "bind", code: ENAMETOOLONG)
            }
            unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: bytes) }
            unsafe unlink(path)
            descriptor = try Self.listen(AF_UNIX, at: &name, options)
            endpoint = .unix(path: path)
        }
    }

    deinit {
        if case .unix(let path) = endpoint { unsafe unlink(path) }
    }

    private static func listen<Name>(
        _ family: Int32, at name: inout Name, _ options: StubServer.Options
    ) throws(SystemError) -> FileDescriptor {
        let number = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw SystemError.last("socket") }
        let descriptor = FileDescriptor(takingOwnershipOf: number)
        set(SO_REUSEADDR, 1, of: number)
        // Accepted connections inherit this option. See socket(7).
        if let size = options.receiveBufferSize { set(SO_RCVBUF, size, of: number) }
        let code = unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(number, $0, socklen_t(MemoryLayout<Name>.size))
            }
        }
        guard code == 0 else { throw SystemError.last("bind") }
        guard Glibc.listen(number, options.backlog) == 0 else { throw SystemError.last("listen") }
        return descriptor
    }

    private static func set(_ option: Int32, _ value: Int32, of socket: Int32) {
        var value = value
        unsafe setsockopt(socket, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func readName<Name>(
        of descriptor: borrowing FileDescriptor, into name: inout Name
    ) throws(SystemError) {
        var size = socklen_t(MemoryLayout<Name>.size)
        let code = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor.number, $0, &size)
            }
        }
        guard code == 0 else { throw SystemError.last("getsockname") }
    }
}
