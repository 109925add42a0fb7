// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import Glibc

extension Transfer {
    func leaveQueue() {
        state.clock.leaveQueue(at: loop.now)
        loop.noteChange(of: self)
    }

    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard let address = unsafe address else { return CCURL_SOCKET_BAD }
        if state.clock.connected != nil {
            guard state.heldHead != nil || mayRepeat() else { return CCURL_SOCKET_BAD }
            state.clock.reconnect(at: loop.now)
        }
        leaveQueue()
        unsafe state.triedAddress = SocketAddress(&address.pointee.addr, size: address.pointee.addrlen)
        guard isAllowed(state.triedAddress) else { return CCURL_SOCKET_BAD }
        let kind = unsafe address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let socket = unsafe Glibc.socket(address.pointee.family, kind, address.pointee.protocol)
        guard socket >= 0 else { return CCURL_SOCKET_BAD }
        loop.didOpen(socket)
        state.socket = socket
        return socket
    }

    /// A connection is ready and the request is about to be sent, or sent again because the connection was lost before
    /// any byte of the response. libcurl would do that up to five times, whatever the method. See CURLOPT_PREREQFUNCTION(3).
    func didConnect(remote: SocketAddress, local: SocketAddress) -> Int32 {
        // A connection that is used again was perhaps made for a request with another policy.
        guard isAllowed(remote.host.isEmpty ? nil : remote) else { return CURL_PREREQFUNC_ABORT }
        if state.heldHead != nil {
            guard beginNextLeg() else { return CURL_PREREQFUNC_ABORT }
        } else if state.attempts > 0 {
            guard mayRepeat(), rewind() else { return CURL_PREREQFUNC_ABORT }
        }
        state.attempts += 1
        state.clock.connect(at: loop.now)
        loop.noteChange(of: self)
        state.metrics.remoteAddress = remote
        state.metrics.localAddress = local
        return CURL_PREREQFUNC_OK
    }

    /// Whether an address may be connected to; nil is a Unix-domain socket's. If not, that is the failure: other addresses
    /// of the name are not tried.
    private func isAllowed(_ address: SocketAddress?) -> Bool {
        guard let addressGuard else { return true }
        guard state.failure == nil else { return false }
        guard let address, !addressGuard.allows(address.host) else { return true }
        var facts = facts()
        facts.address = address
        state.failure = TransportError.cannotConnect(.addressForbidden, facts)
        return false
    }

    /// Whether the request may be sent again: once, where its method allows it, and not after its trailers, of which a
    /// libcurl before 8.7 corrupts memory when a handle sends them twice. If not, that is the failure.
    func mayRepeat() -> Bool {
        guard state.attempts < 2, exchange.mayBeRepeated, !state.hasSentTrailers else {
            state.failure =
                state.failure ?? TransportError.connectionLost(.beforeResponse, facts(code: CURLE_GOT_NOTHING))
            return false
        }
        return true
    }
}

extension SocketAddress {
    /// The numeric form of an address; nil for one without a port. See getnameinfo(3).
    fileprivate init?(_ address: UnsafePointer<sockaddr>, size: UInt32) {
        guard unsafe address.pointee.sa_family != sa_family_t(AF_UNIX) else { return nil }
        let numbers = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 96) { buffer -> [String]? in
            guard let host = buffer.baseAddress else { return nil }
            let port = unsafe host + 64
            let flags = NI_NUMERICHOST | NI_NUMERICSERV
            guard unsafe getnameinfo(address, size, host, 64, port, 32, flags) == 0 else { return nil }
            return unsafe [String(cString: host), String(cString: port)]
        }
        guard let numbers, let port = Int(numbers[1]) else { return nil }
        self.init(host: numbers[0], port: port)
    }
}
