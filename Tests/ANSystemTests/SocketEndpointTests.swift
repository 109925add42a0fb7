// SPDX-License-Identifier: MIT

import ANSystem
import Glibc
import Testing

@Suite struct SocketEndpointTests {
    /// Creates a socket of a family, which is closed after `body`.
    private func withSocket(_ family: Int32, _ body: (Int32) throws -> Void) throws {
        let socket = FileDescriptor(
            takingOwnershipOf: Glibc.socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0))
        try #require(socket.number >= 0)
        try body(socket.number)
    }

    @Test(arguments: [(AF_INET, "0.0.0.0"), (AF_INET6, "::")])
    func `a socket that is not bound has the unspecified address, no port and no connection`(
        family: Int32, host: String
    ) throws {
        try withSocket(family) { socket in
            let end = try #require(SocketEndpoint(localEndOf: socket))
            #expect(end.host == host)
            #expect(end.port == 0)
            #expect(!SocketEndpoint.isConnected(socket))
        }
    }

    @Test func `a Unix-domain socket has no endpoint`() throws {
        try withSocket(AF_UNIX) { #expect(SocketEndpoint(localEndOf: $0) == nil) }
    }

    @Test func `both ends of a socket pair are connected`() throws {
        var numbers: [Int32] = [-1, -1]
        let code = unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &numbers)
        try #require(code == 0)
        let first = FileDescriptor(takingOwnershipOf: numbers[0])
        let second = FileDescriptor(takingOwnershipOf: numbers[1])
        #expect(SocketEndpoint.isConnected(first.number))
        #expect(SocketEndpoint.isConnected(second.number))
    }

    @Test func `a closed descriptor has neither an endpoint nor a connection`() {
        #expect(SocketEndpoint(localEndOf: -1) == nil)
        #expect(!SocketEndpoint.isConnected(-1))
    }
}
