// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import CCurl
import COpenSSL
import Glibc

/// The connection in use, and what was learned while it was made.
package struct TransferConnection: ~Copyable {
    /// The version of HTTP that it speaks, as far as it matters; see ``QUICUse``.
    package var version = HTTPVersion.http1_1
    /// Its socket; `nil` before there is one, for a Unix-domain socket, and over HTTP/3.
    var socket: Int32?
    /// Whether the request is the first one on it.
    var isFirst = false
    /// Its frame monitor, and the request's stream there, which remains set after the stream ends.
    var monitor: HTTP2Monitor?
    var stream: HTTP2Stream?
    package private(set) var fate = Fate.reusable
    /// The handshake of a connection over TLS on which a failure to send is hidden.
    var handshake: Handshake?
    /// Whether libcurl ignores the length that a response declares.
    private var ignoresLength = false
    /// The address to which a connection was attempted last.
    var triedAddress: SocketAddress?
    /// The error with which the system refused a socket.
    var socketError: Int32?
    /// The sockets that were opened for the transfer.
    var sockets: [Int32] = []
    /// The reason for which either side rejected the connection during or after the TLS handshake.
    var refusal: Refusal?
    /// Whether the server requested a client certificate when the connection was made and none was sent.
    var lacksIdentity = false

    /// Creates the state of a transfer without a connection.
    package init() {}

    /// The use of the connection after this exchange.
    package enum Fate: Sendable {
        /// It may carry another request.
        case reusable
        /// libcurl was told to close it; see ``ConnectionReuse``.
        case forbidden
        /// It was discarded before anything was sent, because the server had closed it, unsolicited bytes were waiting, or
        /// it was made for other options.
        case spoilt
    }

    /// The reason for which a server was rejected, with its certificates.
    struct Refusal {
        let failure: TransportError.TLSFailure
        let trust: ServerTrust?
    }

    var isHTTP2: Bool { version == .http2 }
    var isHTTP3: Bool { version == .http3 }
    package var isSpoilt: Bool { fate == .spoilt }

    /// Notes whether the connection can carry the request, and returns it.
    package mutating func check(_ isUsable: Bool) -> Bool {
        if !isUsable { fate = .spoilt }
        return isUsable
    }

    /// Notes whether libcurl must close the connection after this exchange. Returns whether libcurl must be told.
    package mutating func forbidReuse(_ isForbidden: Bool) -> Bool {
        switch fate {
        case .reusable where isForbidden:
            fate = .forbidden
            return true
        case .forbidden where !isForbidden:
            fate = .reusable
            return true
        case .reusable, .forbidden: return false
        case .spoilt: return isForbidden
        }
    }

    /// Notes whether libcurl must ignore the length that a response declares: over HTTP/2. Returns what libcurl must be
    /// told, or `nil` if it knows; the next leg of an exchange may use another version.
    package mutating func ignoreLength() -> Bool? {
        guard ignoresLength != isHTTP2 else { return nil }
        ignoresLength = isHTTP2
        return isHTTP2
    }

    /// Forgets the connection, because the request is sent again by another easy handle. Its version remains until there
    /// is another one.
    package mutating func leave() {
        (socket, stream, fate, ignoresLength) = (nil, nil, .reusable, false)
        (triedAddress, socketError, sockets) = (nil, nil, [])
        (refusal, lacksIdentity, handshake) = (nil, false, nil)
    }
}

extension Transfer {
    func leaveQueue() {
        state.clock.leaveQueue(at: loop.now)
        loop.noteChange(of: self)
    }

    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard let address = unsafe address else { return CCURL_SOCKET_BAD }
        if state.clock.connected != nil {
            guard state.receiving.isHeld || mayRepeat() else { return CCURL_SOCKET_BAD }
            state.clock.reconnect(at: loop.now)
            // Another connection may have its number before this transfer has one.
            stopExpectingSendFailure()
            loop.didLeave(state.connection.socket)
            state.connection.socket = nil
        }
        leaveQueue()
        state.connection.triedAddress = unsafe SocketEndpoint(&address.pointee.addr, size: address.pointee.addrlen).map
        {
            SocketAddress(host: $0.host, port: $0.port)
        }
        guard isAllowed(state.connection.triedAddress), unsafe isChosen(address.pointee.family) else {
            return CCURL_SOCKET_BAD
        }
        let kind = unsafe address.pointee.socktype | CCURL_SOCK_CLOEXEC
        let socket = unsafe Glibc.socket(address.pointee.family, kind, address.pointee.protocol)
        guard socket >= 0 else {
            state.connection.socketError = errno
            return CCURL_SOCKET_BAD
        }
        state.connection.socketError = nil
        let isTCP = unsafe address.pointee.protocol != Int32(IPPROTO_UDP)
        loop.didOpen(socket, isConnecting: isTCP)
        if isTCP { state.connection.sockets.append(socket) }
        return socket
    }

    /// Called when a connection is ready and the request is about to be sent, or sent again because the connection was
    /// lost before any byte of the response. libcurl would repeat it up to five times, regardless of the method. See
    /// CURLOPT_PREREQFUNCTION(3).
    func didConnect(remote: SocketAddress, local: SocketAddress) -> Int32 {
        // libcurl may have read from other connections in the same turn, and now chooses the cookies.
        loop.removeOverlays()
        stopExpectingSendFailure()
        let isSentAgain = !state.receiving.isHeld && state.repeating.attempts > 0
        // Whether this connection can be used or not: if not, the request would be sent again on another one.
        if isSentAgain, !mayRepeat() { return CURL_PREREQFUNC_ABORT }
        // A reused connection may have been made for a request with another address policy.
        let address = exchange.options.connection.unixSocketPath == nil && !remote.host.isEmpty ? remote : nil
        guard isAllowed(address), meetConnection(remote: remote, local: local) else {
            return CURL_PREREQFUNC_ABORT
        }
        // Others that were opened may be closed, and have the numbers of other transfers' sockets.
        if let socket = usedSocket ?? state.connection.sockets.last { loop.didConnect(socket) }
        if state.receiving.isHeld { state.beginNextLeg(exchange, on: loop) }
        guard rewind() else { return CURL_PREREQFUNC_ABORT }
        if isSentAgain {
            state.receiving.beginAgain()
            state.repeating.reconnect(probes: exchange.probes)
        }
        try? handle.set(CURLOPT_FRESH_CONNECT, exchange.needsOwnConnection || mayBeRepeatedAfterClosing)
        // libcurl may send the request again, by which time the transfer has no limit for waiting.
        if awaitsHandshakes { try? awaitHandshakes(false) }
        reviewReuse(after: .begun)
        // Over HTTP/2 the end of the stream delimits a body. libcurl would end an exchange before its trailers, and take
        // a body without a length for an empty one.
        if let isIgnored = state.connection.ignoreLength() {
            try? handle.set(CURLOPT_IGNORE_CONTENT_LENGTH, isIgnored)
        }
        joinStream()
        expectSendFailure()
        state.repeating.send()
        exchange.request[ResponseHead.Sending.self]?.note()
        if exchange.cookies == .engine, exchange.webSocket == nil {
            // Those of the challenge that is answered, or of a login while the request waited, are among them.
            try? handle.set(CURLOPT_COOKIE, try loop.context.shares.field(for: exchange, own: headers.cookies))
        }
        // libcurl does not read a body of length 0.
        if case .channel(let channel) = exchange.upload, channel.length == 0 { channel.demand() }
        state.clock.connect(at: loop.now)
        if countsQueue { try? limitConnecting() }
        loop.noteChange(of: self)
        state.metrics.remoteAddress = remote
        state.metrics.localAddress = local
        return CURL_PREREQFUNC_OK
    }

    /// Whether the connection may be closed in answer to the request, so that libcurl sends it again: several idle ones may
    /// be as old, and it is sent once more only. The answer to a challenge may have to use the connection of the challenge.
    private var mayBeRepeatedAfterClosing: Bool {
        state.connection.version == .http1_1 && !state.connection.isFirst && !exchange.answersChallenges
    }

    /// Finds the connection's socket and checks that the server has not closed it; a request of any method can be moved
    /// to another connection as long as nothing was sent. Over HTTP/1.1, no bytes may be waiting on it: they would be
    /// parsed as the response to this request, and each later response as that of the following request. libcurl checks
    /// only whether the connection is open.
    ///
    /// A connection that was made neither for this transfer nor for an earlier one is not used: policies were not
    /// applied to it.
    ///
    /// - Returns: Whether the connection can be used. If not, the request is sent on another one.
    private func meetConnection(remote: SocketAddress, local: SocketAddress) -> Bool {
        noteVersion()
        state.connection.isFirst = false
        // The table contains TCP connections. A UDP socket may have the same local port.
        guard !state.connection.isHTTP3 else {
            state.connection.socket = nil
            return state.connection.check(hasChosenEnds(local, remote) && !mayHaveEnded(handle.activeSocket))
        }
        guard exchange.options.connection.unixSocketPath == nil, !remote.host.isEmpty else { return true }
        let ends = ConnectionTable.Ends(local: local, remote: remote)
        let origin = loop.connections.origin(of: ends, opened: state.connection.sockets) {
            SocketEndpoint(localEndOf: $0)?.port
        }
        switch origin {
        case .known(let socket):
            let isInUse = state.receiving.isHeld && socket == state.connection.socket
            state.connection.socket = socket
            return state.connection.check(isUsable(socket, isIdle: !isInUse, local: local, remote: remote))
        case .new(let socket):
            loop.connections.insert(
                ends, socket: socket, way, offersHTTP2: allowsHTTP2, origin: self.origin,
                generation: state.connection.isHTTP2 && isGenerationKnown ? generation : nil,
                version: state.connection.version, at: loop.now)
            state.connection.socket = socket
            state.connection.isFirst = true
            noteOpened()
            return true
        case .foreign:
            return state.connection.check(false)
        }
    }

    /// The socket of the connection in use, also in the Unix domain, which the table of connections does not know; such a
    /// connection carries one request.
    var usedSocket: Int32? {
        state.connection.socket
            ?? (exchange.options.connection.unixSocketPath == nil ? nil : state.connection.sockets.last)
    }

    /// Tells the other loops of a new connection.
    private func noteOpened() {
        let mayShare = allowsHTTP2 && exchange.sharing == .multiplexed && exchange.probes.isEmpty
        let isMultiplexed = state.connection.isHTTP2 && exchange.sharing == .multiplexed
        // A server may refuse HTTP/2 to one request, and other servers of the origin may not speak it.
        let isChoice =
            mayShare && (isMultiplexed || !loop.monitors.keys.contains { loop.connections.isOpen($0, to: origin) })
        let needsMore = loop.context.dispatcher.open(
            exchange, origin, on: loop.index, isChoice: isChoice, isMultiplexed: isMultiplexed)
        if needsMore { loop.connections.noteNeed() }
    }

    /// Whether the connection carries HTTP/2 and one exchange at a time; see ``HTTP2Sharing``.
    var isExclusive: Bool { state.connection.isHTTP2 && loop.context.http2 == .exclusive }

    /// How a connection for the request is made; `nil` for directly.
    private var way: ConnectionTable.Way? {
        let localInterface = exchange.options.connection.localInterface
        let resolver = exchange.options.connection.dnsOverHTTPS
        guard exchange.mayUseProxy || localInterface != nil || resolver != nil else { return nil }
        return ConnectionTable.Way(
            localInterface: localInterface, resolver: resolver, tunnelCredential: exchange.tunnelCredential,
            tunnelFields: exchange.tunnelFields,
            proxyRoots: mayUseTLSProxy ? exchange.options.tls.trustRoots : nil)
    }

    /// Whether a connection that has carried a request can carry this one.
    ///
    /// - Parameter isIdle: Whether it has carried no earlier leg of this exchange since it was idle.
    private func isUsable(_ socket: Int32, isIdle: Bool, local: SocketAddress, remote: SocketAddress) -> Bool {
        let isOpen =
            state.connection.isHTTP2
            ? !Self.hasEnded(socket) && !loop.connections.isSuspect(socket) && !isAged(socket)
                && (loop.monitors[socket].map { !$0.isClosing } ?? !mayHaveEnded(socket))
            : !Self.hasInput(socket) && !hasBufferedInput
                && !(isIdle && loop.connections.isExpired(socket, at: loop.now))
        // libcurl uses a connection of any version, also one that had no choice.
        let isChosenVersion =
            state.connection.isHTTP2
            ? allowsHTTP2 : !allowsHTTP2 || !exchange.isSecure || loop.connections.offersHTTP2(socket)
        // libcurl refuses to send a body of unknown length to a server that is known to speak HTTP/1.0.
        let takesBody = exchange.upload.length != nil || !loop.connections.isHTTP10(socket)
        return isOpen && loop.connections.wasMade(socket, way) && isChosenVersion && takesBody
            && hasChosenEnds(local, remote)
    }

    private func isAged(_ socket: Int32) -> Bool {
        guard let limit = loop.context.limits.maximumAge else { return false }
        return loop.connections.noteAge(socket, above: .seconds(max(1, limit.wholeSeconds)), at: loop.now)
    }

    /// Whether an address belongs to the chosen version of IP. Recent versions of libcurl (8.23) do not compare it with
    /// an address in the URL.
    private func isChosen(_ family: Int32) -> Bool {
        switch exchange.options.connection.ipVersion {
        case .any: true
        case .v4: family != AF_INET6
        case .v6: family != AF_INET
        }
    }

    /// Whether the connection's endpoints match the options. libcurl 8.9 and later do not compare the local address
    /// when they search for a connection to reuse, and 8.21 does not compare the IP version.
    private func hasChosenEnds(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
        let options = exchange.options.connection
        if let name = options.localInterface, name.hasPrefix("host!") {
            let host = HostName(String(name.dropFirst("host!".count)))
            guard !host.isAddress || host == HostName(local.host) else { return false }
        }
        switch options.ipVersion {
        case .v4: return !remote.host.contains(":")
        case .v6: return remote.host.contains(":")
        default: return true
        }
    }

    /// The TLS session of the connection in use; `nil` if there is none, or if libcurl does not use the OpenSSL of this
    /// module: forks of OpenSSL call themselves OpenSSL in CURLINFO_TLS_SSL_PTR(3).
    var tlsSession: OpaquePointer? {
        guard CurlLibrary.usesOpenSSL else { return nil }
        return unsafe OpaquePointer(ccurl_tls_session(handle.raw))
    }

    /// Whether the end of a connection that carries several exchanges may be waiting on its socket, unread by libcurl, which
    /// would lose the request.
    private func mayHaveEnded(_ socket: Int32?) -> Bool {
        guard let socket else { return false }
        return loop.context.defects.forbidInput(
            isWatched: loop.isWatched(socket), isRepeatable: exchange.mayBeRepeated) && Self.hasInput(socket)
    }

    /// Whether OpenSSL holds bytes that it has already read from the socket.
    private var hasBufferedInput: Bool {
        guard exchange.isSecure, let session = unsafe tlsSession else { return false }
        return unsafe SSL_has_pending(session) == 1
    }

    /// Whether bytes, the end of the stream or an error are pending on a socket.
    private static func hasInput(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        let count = unsafe recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count >= 0 || errno != EAGAIN && errno != EINTR
    }

    /// Whether the peer has closed the connection, regardless of unread bytes. See poll(2).
    static func hasEnded(_ socket: Int32) -> Bool {
        // POLLRDHUP, which Glibc declares only with _GNU_SOURCE.
        var entry = pollfd(fd: socket, events: 0x2000, revents: 0)
        return unsafe poll(&entry, 1, 0) > 0
    }

    /// Whether the policy allows connecting to an address, which is `nil` for a Unix-domain socket. If not, the
    /// transfer fails: no other addresses of the name are tried.
    private func isAllowed(_ address: SocketAddress?) -> Bool {
        guard let addressGuard else { return true }
        guard state.failure == nil else { return false }
        guard let address, !addressGuard.allows(address.host) else { return true }
        var context = context()
        context.address = address
        state.failure = TransportError(.cannotConnect(.addressForbidden), context: context)
        return false
    }
}
