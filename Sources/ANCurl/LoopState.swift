// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import Glibc

/// What an engine and libcurl's callbacks share; it is touched on the loop's thread only.
final class LoopState {
    /// The time at the start of this turn of the loop, which is exact enough for timers.
    var now = MonotonicInstant.now
    /// When libcurl wants to be called.
    private(set) var curlTimer: MonotonicInstant?
    /// Transfers to which something happened in this turn.
    private var changed: [Transfer] = []
    private var sockets = SocketTable()
    /// The connections that have carried a request.
    var connections = ConnectionTable()
    /// What reads ahead on HTTP/2 connections, by their sockets.
    private(set) var monitors: [Int32: HTTP2Monitor] = [:]
    /// The sockets of monitors whose bytes libcurl has not read.
    private var unread: Set<Int32> = []
    private let recordBuffer = RecordBuffer()
    private var constants: [UInt: String] = [:]
    let headerFields = HeaderFieldCache()
    /// The limits of the connection pool.
    let pool: ConnectionLimits
    /// What verifies servers.
    let securities: SecurityCache
    /// The TLS sessions and cookies that transfers share.
    let shares: HandleShares
    private let loop: EventLoop

    init(loop: EventLoop, pool: ConnectionLimits, securities: SecurityCache) throws(TransportError) {
        shares = try HandleShares()
        self.loop = loop
        self.pool = pool
        self.securities = securities
    }

    // MARK: Names

    /// The string for a name of OpenSSL's, which are constants: each is made once.
    func name(_ constant: UnsafePointer<CChar>?) -> String? {
        guard let constant = unsafe constant else { return nil }
        if let name = constants[UInt(bitPattern: constant)] { return name }
        let name = unsafe String(cString: constant)
        constants[UInt(bitPattern: constant)] = name
        return name
    }

    // MARK: Timer

    /// libcurl sets its one timer: -1 for none. See CURLMOPT_TIMERFUNCTION(3).
    func setTimer(_ milliseconds: Int) {
        curlTimer = milliseconds < 0 ? nil : now.advanced(by: .milliseconds(milliseconds))
    }

    /// Whether libcurl's timer is due; it then counts as fired.
    func takeDueTimer() -> Bool {
        guard let timer = curlTimer, timer <= now else { return false }
        curlTimer = nil
        return true
    }

    // MARK: Sockets

    /// libcurl says what it waits for. See CURLMOPT_SOCKETFUNCTION(3).
    func watch(_ socket: Int32, _ what: Int32) {
        switch what {
        case CURL_POLL_IN: perform(sockets.want(socket, for: .readable), socket)
        case CURL_POLL_OUT: perform(sockets.want(socket, for: .writable), socket)
        case CURL_POLL_INOUT: perform(sockets.want(socket, for: [.readable, .writable]), socket)
        default: perform(sockets.release(socket), socket)
        }
    }

    func didOpen(_ socket: Int32) {
        sockets.didOpen(socket)
    }

    func willClose(_ socket: Int32) {
        sockets.willClose(socket)
        connections.remove(socket)
        monitors[socket] = nil
        unread.remove(socket)
    }

    /// Ends a connection that no other request may use: libcurl then finds it dead.
    func retire(_ socket: Int32) {
        guard connections.contains(socket) else { return }
        _ = shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Whether libcurl waits for a socket that is ready; one that it does not wait for leaves the set.
    func isWanted(_ ready: ReadyDescriptor) -> Bool {
        if sockets.isWanted(ready.number) { return true }
        loop.epoll.remove(ready.number)
        return false
    }

    /// Whether libcurl waits for bytes on a socket.
    func isRead(_ socket: Int32) -> Bool {
        sockets.isRead(socket)
    }

    /// A failure cannot be reported to libcurl; the transfer's own limits on time end it.
    private func perform(_ operation: SocketTable.Operation, _ socket: Int32) {
        switch operation {
        case .none: break
        case .add(let readiness): try? loop.epoll.add(socket, for: readiness)
        case .modify(let readiness): try? loop.epoll.modify(socket, for: readiness)
        case .remove: loop.epoll.remove(socket)
        }
    }

    // MARK: HTTP/2

    /// Ends an HTTP/2 connection, if it is open still.
    func retire(_ monitor: HTTP2Monitor) {
        // Another connection may have the number of a socket that was closed.
        if monitors[monitor.socket] === monitor { retire(monitor.socket) }
    }

    /// Starts to read ahead on an HTTP/2 connection.
    func watchFrames(_ monitor: HTTP2Monitor) {
        monitors[monitor.socket] = monitor
    }

    /// Looks at the next TLS record of a connection.
    func readAhead(_ monitor: HTTP2Monitor) -> HTTP2Monitor.Progress {
        let progress = unsafe monitor.readAhead(into: recordBuffer.bytes)
        if progress == .unread { unread.insert(monitor.socket) }
        return progress
    }

    /// Returns the sockets on which libcurl waits for bytes, while it has not read all that were looked at.
    func takeUnread() -> [Int32] {
        guard !unread.isEmpty else { return [] }
        unread = unread.filter { monitors[$0].map { $0.unreadCount > 0 } == true }
        return unread.filter(isRead)
    }

    // MARK: Changes

    /// Notes that a transfer's reader may have to be woken, or that another limit on time holds for it now; all that
    /// happens to it in one turn is looked at once.
    func noteChange(of transfer: Transfer) {
        guard !transfer.isChanged else { return }
        transfer.isChanged = true
        changed.append(transfer)
    }

    /// Looks at the transfers to which something happened; what happens to them meanwhile is looked at too.
    func reviewChanges(_ review: (Transfer) -> Void) {
        while let transfer = changed.popLast() {
            transfer.isChanged = false
            review(transfer)
        }
    }
}

/// Room for the plaintext of one TLS record (RFC 8446 §5.1).
@safe private struct RecordBuffer: ~Copyable {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 14, alignment: 16)

    deinit {
        unsafe bytes.deallocate()
    }
}
