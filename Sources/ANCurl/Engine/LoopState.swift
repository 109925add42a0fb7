// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import Glibc

/// The state shared by an engine and libcurl's callbacks. Accessed on the loop's thread only.
///
/// Run-time checks of exclusive access took 4 % of the instructions of a small request, so they are disabled for the
/// properties that every request accesses. What they detect cannot happen here: one thread accesses the properties, no
/// access lasts longer than a statement, and no statement that changes one calls into libcurl, which could call back.
final class LoopState {
    /// The time at the start of this turn of the loop, which is precise enough for timers.
    @safe @exclusivity(unchecked) var now = MonotonicInstant.now
    /// The time at which libcurl's timer expires; `nil` if it is not set.
    @safe @exclusivity(unchecked) private(set) var curlTimer: MonotonicInstant?
    /// The transfers to review in this turn.
    @safe @exclusivity(unchecked) private var changed: [Transfer] = []
    @safe @exclusivity(unchecked) private var sockets = SocketTable()
    /// The connections that have carried a request.
    @safe @exclusivity(unchecked) var connections = ConnectionTable()
    /// The frame monitors of HTTP/2 connections, by socket.
    @safe @exclusivity(unchecked) private(set) var monitors: [Int32: HTTP2Monitor] = [:]
    /// The sockets of monitors that hold bytes libcurl has not read.
    @safe @exclusivity(unchecked) private var unread: Set<Int32> = []
    /// The sockets on which libcurl has given up to connect, with ``CurlDefects/forgottenAttempts``.
    @safe @exclusivity(unchecked) private var lostAttempts: Set<Int32> = []
    /// The transfers that send bodies over HTTP/1.1 without TLS, by socket.
    @safe @exclusivity(unchecked) var senders: [Int32: Transfer] = [:]
    /// The transfers over HTTP/1.1 whose readers have no room, by socket. See ``Transfer/pauseReceiving()``.
    @safe @exclusivity(unchecked) private(set) var paused: [Int32: (transfer: Transfer, held: Readiness)] = [:]
    /// When transfers with limited speed receive and send.
    @safe @exclusivity(unchecked) var (receiving, sending) = (
        SpeedSchedule<Transfer>(\.bytesReceivedPerSecond), SpeedSchedule<Transfer>(\.bytesSentPerSecond)
    )
    /// The names of the cookies that responses without TLS have set since ``removeOverlays()``, by host.
    @safe @exclusivity(unchecked) private var insecureCookies: [String: Set<String>] = [:]
    /// The transfers that have become WebSocket connections, by socket.
    @safe @exclusivity(unchecked) var upgraded: [Int32: Transfer] = [:]
    /// A buffer for the bytes of a WebSocket connection.
    lazy var receiveBuffer = ReceivedBytes(count: 1 << 16)
    private let recordBuffer = ReceivedBytes(count: 1 << 14)
    @safe @exclusivity(unchecked) private var constants: [UInt: String] = [:]
    let headerFields: HeaderFieldCache
    /// The settings and the state common to the event loops of the transport.
    let context: EngineContext
    /// The number of this loop.
    let index: Int
    private let loop: EventLoop

    init(_ loop: EventLoop, _ context: EngineContext, index: Int) {
        headerFields = HeaderFieldCache(noting: context.shares.cookieFlag)
        self.loop = loop
        self.context = context
        self.index = index
    }

    // MARK: Names

    /// Returns the string for a constant C string of OpenSSL's, converting each constant once.
    func name(_ constant: UnsafePointer<CChar>?) -> String? {
        guard let constant = unsafe constant else { return nil }
        if let name = constants[UInt(bitPattern: constant)] { return name }
        let name = unsafe String(cString: constant)
        constants[UInt(bitPattern: constant)] = name
        return name
    }

    // MARK: Cookies

    /// Notes a cookie that a response without TLS has set.
    func noteInsecureCookie(named name: String, from url: URL) {
        guard let host = Cookie.host(of: url.withASCIIHost) else { return }
        insecureCookies[host, default: []].insert(name.lowercased())
    }

    /// Removes the noted cookies that overlay secure ones: before others learn of the response, and at the latest when
    /// libcurl has read what had arrived on the connection, because the head may never end. Not for each line or interim
    /// head, because libcurl tells its cookies in quadratic time: 3,000 in 14 ms.
    func removeOverlays() {
        guard !insecureCookies.isEmpty else { return }
        context.shares.removeOverlays(insecureCookies)
        insecureCookies = [:]
    }

    // MARK: Timer

    /// Sets libcurl's single timer, in milliseconds; -1 removes it. See CURLMOPT_TIMERFUNCTION(3).
    func setTimer(_ milliseconds: Int) {
        curlTimer = milliseconds < 0 ? nil : now.advanced(by: .milliseconds(milliseconds))
    }

    /// Whether libcurl's timer has expired. If so, it is removed.
    func takeDueTimer() -> Bool {
        guard let timer = curlTimer, timer <= now else { return false }
        curlTimer = nil
        return true
    }

    // MARK: Sockets

    /// Updates the events for which libcurl waits on a socket. See CURLMOPT_SOCKETFUNCTION(3).
    func watch(_ socket: Int32, _ what: Int32) {
        switch what {
        case CURL_POLL_IN: perform(sockets.want(socket, for: .readable), socket)
        case CURL_POLL_OUT: perform(sockets.want(socket, for: .writable), socket)
        case CURL_POLL_INOUT: perform(sockets.want(socket, for: [.readable, .writable]), socket)
        default:
            // libcurl closes a socket that was not connected without the callback.
            noteLostAttempt(socket)
            perform(sockets.release(socket), socket)
        }
    }

    /// Stops to wait for input that libcurl does not read, until it asks for events again. See
    /// ``CurlDefects/watchedPauses``.
    func stopReading(_ socket: Int32) { perform(sockets.stopReading(socket), socket) }

    /// Notes that a transfer pauses, and holds back events on its socket, until ``readAgain(_:)``.
    func notePaused(_ transfer: Transfer, on socket: Int32, holding readiness: Readiness) {
        paused[socket] = (transfer, readiness)
        if !readiness.isEmpty { perform(sockets.hold(socket, readiness), socket) }
    }

    func readAgain(_ socket: Int32) {
        guard !context.defects.isDisjoint(with: [.watchedPauses, .readPauses, .sendingReads]) else { return }
        paused[socket] = nil
        perform(sockets.readAgain(socket), socket)
    }

    /// Reads what libcurl was woken by, a byte in a pair of sockets or the count of an eventfd. See
    /// ``CurlDefects/unreadWakeups``.
    func readWakeup(_ descriptor: Int32) {
        guard !sockets.isConnection(descriptor) else { return }
        var (domain, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        let isSocket = unsafe getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0
        guard !isSocket || domain == AF_UNIX else { return }
        var bytes = [UInt8](repeating: 0, count: 64)
        while unsafe read(descriptor, &bytes, bytes.count) == bytes.count {}
    }

    private func noteLostAttempt(_ socket: Int32) {
        if context.defects.contains(.forgottenAttempts), isConnecting(socket) { lostAttempts.insert(socket) }
    }

    /// Returns the sockets on which libcurl has given up to connect since the last call.
    func takeLostAttempts() -> Set<Int32> {
        guard !lostAttempts.isEmpty else { return [] }
        defer { lostAttempts = [] }
        return lostAttempts
    }

    /// Updates the events for which a WebSocket connection waits.
    func watch(_ socket: Int32, for readiness: Readiness) {
        perform(readiness.isEmpty ? sockets.release(socket) : sockets.want(socket, for: readiness), socket)
    }

    /// - Parameter isConnecting: Whether ``didConnect(_:)`` follows.
    func didOpen(_ socket: Int32, isConnecting: Bool) {
        sockets.didOpen(socket, isConnecting: isConnecting)
    }

    func didConnect(_ socket: Int32) { sockets.didConnect(socket) }

    /// Whether libcurl is watching the socket.
    func isWatched(_ socket: Int32) -> Bool { sockets.isWanted(socket) }

    /// Whether the socket's connection is being made.
    func isConnecting(_ socket: Int32) -> Bool { sockets.isConnecting(socket) }

    func willClose(_ socket: Int32) {
        // libcurl does not wait for a socket that is refused at once.
        noteLostAttempt(socket)
        perform(sockets.willClose(socket), socket)
        forget(socket)
        monitors[socket] = nil
        unread.remove(socket)
        upgraded[socket] = nil
        senders.removeValue(forKey: socket)?.keepUnreadResponse(socket)
    }

    /// Shuts down a connection that must not be reused, so that libcurl finds it dead.
    func retire(_ socket: Int32) {
        guard connections.contains(socket) else { return }
        _ = shutdown(socket, Int32(SHUT_RDWR))
    }

    /// Notes that a transfer no longer uses a connection.
    func didLeave(_ socket: Int32?) {
        if let socket { connections.noteLeft(socket) }
    }

    /// Closes the connection that has been idle longest, of the given origin or of any, except those in use.
    func retireIdle(of origin: String?, except used: Set<Int32>) {
        guard let socket = connections.longestIdle(of: origin, except: used) else {
            if let origin { context.dispatcher.keep(origin, on: index) }
            return
        }
        retire(socket)
        forget(socket)
    }

    private func forget(_ socket: Int32) {
        guard let origin = connections.remove(socket) else { return }
        context.dispatcher.close(origin, on: index)
    }

    /// Whether libcurl waits for the ready socket; if not, only the end of its connection is waited for.
    func isWanted(_ ready: ReadyDescriptor) -> Bool {
        if sockets.isWanted(ready.number) { return true }
        perform(sockets.ignore(ready.number), ready.number)
        return false
    }

    /// Whether libcurl waits for a socket to become readable.
    func isRead(_ socket: Int32) -> Bool {
        sockets.isRead(socket)
    }

    /// Performs an epoll operation. A failure cannot be reported to libcurl; the transfer's time limits end it instead.
    private func perform(_ operation: SocketTable.Operation, _ socket: Int32) {
        switch operation {
        case .none: break
        case .add(let readiness): try? loop.epoll.add(socket, for: readiness)
        case .modify(let readiness):
            do throws(SystemError) {
                try loop.epoll.modify(socket, for: readiness)
            } catch {
                // A socket that was closed without notice has left the set, and another one has its number.
                try? loop.epoll.add(socket, for: readiness)
            }
        case .remove: loop.epoll.remove(socket)
        }
    }

    // MARK: HTTP/2

    /// Shuts down an HTTP/2 connection if it is still open.
    func retire(_ monitor: HTTP2Monitor) {
        // Another connection may have reused the number of a closed socket.
        if isOpen(monitor) { retire(monitor.socket) }
    }

    /// Notes whether an HTTP/2 connection accepts no new streams.
    func reviewClosing(_ monitor: HTTP2Monitor) {
        if monitor.isClosing, isOpen(monitor) { connections.noteClosing(monitor.socket) }
    }

    /// Whether the connection of a monitor is open.
    func isOpen(_ monitor: HTTP2Monitor) -> Bool {
        monitors[monitor.socket] === monitor
    }

    /// Starts reading ahead on an HTTP/2 connection.
    func watchFrames(_ monitor: HTTP2Monitor) {
        monitors[monitor.socket] = monitor
    }

    /// Inspects the next TLS record of a connection.
    func readAhead(_ monitor: HTTP2Monitor) -> HTTP2Monitor.Progress {
        // Transfers know the monitor of a connection that is closed: its session is freed, and its socket may be another one's.
        guard isOpen(monitor) else { return .ended }
        let progress = unsafe monitor.readAhead(into: recordBuffer.bytes)
        if progress == .unread { unread.insert(monitor.socket) }
        return progress
    }

    /// Returns the sockets on which libcurl waits for bytes and whose inspected bytes it has not all read.
    func takeUnread() -> [Int32] {
        guard !unread.isEmpty else { return [] }
        unread = unread.filter { monitors[$0].map { $0.unreadCount > 0 } == true }
        return unread.filter(isRead)
    }

    // MARK: Changes

    /// Queues a transfer for review, because its reader may have to be resumed or another time limit applies. All
    /// changes within one turn are reviewed together.
    func noteChange(of transfer: Transfer) {
        guard !transfer.isChanged else { return }
        transfer.isChanged = true
        changed.append(transfer)
    }

    /// Reviews the queued transfers, including those that are queued meanwhile.
    func reviewChanges(_ review: (Transfer) -> Void) {
        while let transfer = changed.popLast() {
            transfer.isChanged = false
            review(transfer)
        }
    }
}

/// A buffer for received bytes, such as the plaintext of one TLS record (RFC 8446 §5.1).
@safe final class ReceivedBytes {
    let bytes: UnsafeMutableRawBufferPointer

    init(count: Int) {
        unsafe bytes = .allocate(byteCount: count, alignment: 16)
    }

    deinit {
        unsafe bytes.deallocate()
    }
}
