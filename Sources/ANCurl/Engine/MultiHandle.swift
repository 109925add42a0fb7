// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl
import FoundationEssentials
import Glibc

/// An owned `CURLM *`, the multi handle of an engine. It is freed on the loop's thread. See libcurl-multi(3).
///
/// It is an object because the engine would read a value that cannot be copied through a coroutine, with an allocation.
@safe
final class MultiHandle {
    private let raw: UnsafeMutableRawPointer
    private let limits: ConnectionLimits
    /// The number of connections of long-lived exchanges, by which the limits are raised.
    private var longLived = 0
    private var isRaised = false
    /// The number of transfers that may wait for connections to a resolver, which libcurl counts.
    private var resolving = 0

    /// Creates a multi handle whose callbacks report to `loop`, which must outlive it.
    init(reportingTo loop: LoopState) throws(TransportError) {
        guard let raw = unsafe curl_multi_init() else {
            throw TransportError(.internalInconsistency("curl_multi_init failed."))
        }
        unsafe self.raw = unsafe raw
        limits = loop.context.limits
        unsafe WakeupSockets.closeOnExec(of: raw)
        let context = unsafe Unmanaged.passUnretained(loop).toOpaque()
        unsafe _ = ccurl_multi_set_socket_callback(
            raw,
            { handle, socket, what, context, _ in
                guard let context = unsafe context else { return 0 }
                unsafe Unmanaged<LoopState>.fromOpaque(context).takeUnretainedValue().watch(socket, what)
                let isReading = what & CURL_POLL_IN != 0 && what != CURL_POLL_REMOVE
                unsafe transfer(of: handle)?.noteReading(isReading)
                return 0
            }, context)
        unsafe _ = ccurl_multi_set_timer_callback(
            raw,
            { _, milliseconds, context in
                guard let context = unsafe context else { return 0 }
                unsafe Unmanaged<LoopState>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds)
                return 0
            }, context)
        applyLimits()
        set(CURLMOPT_MAX_CONCURRENT_STREAMS, ConnectionLimits.maximumStreams)
        for (option, value) in Self.recentOptions { set(option, value) }
        set(CURLMOPT_PIPELINING, Int(loop.context.http2 == .multiplexed ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING))
    }

    /// Options of libcurl 8.20 and later by their numbers, which older headers do not name, and older versions refuse:
    /// CURLMOPT_RESOLVE_THREADS_MAX(3), because names whose servers do not answer would soon occupy the 20 threads that
    /// look up all names; and CURLMOPT_QUICK_EXIT(3), without which freeing the handle waits for these threads, on the
    /// loop.
    private static let recentOptions = [(CURLMoption(20), 256), (CURLMoption(21), 1)]

    deinit {
        // libcurl would otherwise call back during cleanup.
        unsafe _ = ccurl_multi_set_socket_callback(raw, nil, nil)
        unsafe _ = ccurl_multi_set_timer_callback(raw, nil, nil)
        unsafe _ = curl_multi_cleanup(raw)
    }

    /// Raises libcurl's limits for one host and for the connections that it keeps by the number of connections of
    /// long-lived exchanges, which it counts like any others. ``AdmissionQueue`` limits these.
    func raiseLimits(by longLived: Int) {
        guard longLived != self.longLived else { return }
        if longLived > self.longLived { isRaised = true }
        self.longLived = longLived
        applyLimits()
    }

    /// Returns whether the limits were raised since the last call, so that transfers for which there was no capacity may have
    /// some.
    func takeRaise() -> Bool {
        defer { isRaised = false }
        return isRaised
    }

    /// Raises libcurl's limit for all hosts by the connections to a resolver, up to two for each transfer that uses one,
    /// for versions of libcurl with ``CurlDefects/countedResolvers``. ``AdmissionQueue`` limits the transfers.
    func raiseLimit(byResolving resolving: Int) {
        guard resolving != self.resolving else { return }
        self.resolving = resolving
        applyLimits()
    }

    private func applyLimits() {
        // libcurl sets no limit for 0.
        let total = limits.maximumConnections.map { min(max(1, $0), Int(Int32.max)) + 2 * resolving }
        set(CURLMOPT_MAX_TOTAL_CONNECTIONS, total ?? 0)
        for (option, limit) in [
            (CURLMOPT_MAX_HOST_CONNECTIONS, limits.maximumConnectionsPerHost),
            (CURLMOPT_MAXCONNECTS, limits.maximumIdleConnections),
        ] {
            set(option, limit > 0 ? min(limit, Int(Int32.max)) + longLived : 0)
        }
    }

    private func set(_ option: CURLMoption, _ value: Int) {
        unsafe _ = ccurl_multi_set_long(raw, option, min(max(0, value), Int(Int32.max)))
    }

    func add(_ handle: borrowing EasyHandle) throws(TransportError) {
        try check(unsafe curl_multi_add_handle(raw, handle.raw))
    }

    func remove(_ handle: borrowing EasyHandle) {
        unsafe _ = curl_multi_remove_handle(raw, handle.raw)
    }

    /// Lets libcurl process a ready socket.
    func handle(_ ready: ReadyDescriptor) {
        var mask: Int32 = 0
        if ready.readiness.contains(.readable) { mask |= CURL_CSELECT_IN }
        if ready.readiness.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if !ready.readiness.isDisjoint(with: [.failed, .hungUp]) { mask |= CURL_CSELECT_ERR }
        var running: Int32 = 0
        unsafe _ = curl_multi_socket_action(raw, ready.number, mask, &running)
    }

    /// Lets libcurl process its expired timers.
    func handleTimeout() {
        var running: Int32 = 0
        unsafe _ = curl_multi_socket_action(raw, CCURL_SOCKET_TIMEOUT, 0, &running)
    }

    /// The time until the timer expires, in milliseconds; `nil` if there is none. See curl_multi_timeout(3).
    var nextTimeout: Int? {
        var milliseconds = -1
        guard unsafe curl_multi_timeout(raw, &milliseconds) == CURLM_OK, milliseconds >= 0 else { return nil }
        return milliseconds
    }

    /// Returns the next finished transfer with libcurl's result; `nil` if no other is finished.
    func nextFinished() -> (Transfer, CURLcode)? {
        var handle: UnsafeMutableRawPointer?
        var result = CURLE_OK
        guard unsafe ccurl_next_finished(raw, &handle, &result), let transfer = unsafe transfer(of: handle) else {
            return nil
        }
        return (transfer, result)
    }

    private func check(_ code: CURLMcode) throws(TransportError) {
        guard code == CURLM_OK else {
            var context = FailureContext()
            context.message = unsafe String(cString: curl_multi_strerror(code))
            throw TransportError(.internalInconsistency("libcurl refused a transfer."), context: context)
        }
    }
}

/// Returns the transfer of an easy handle; `nil` for a handle created by libcurl itself.
private func transfer(of handle: UnsafeMutableRawPointer?) -> Transfer? {
    var context: UnsafeMutableRawPointer?
    guard let handle = unsafe handle, unsafe ccurl_get_pointer(handle, CURLINFO_PRIVATE, &context) == CURLE_OK else {
        return nil
    }
    return unsafe context.map { unsafe Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

/// The pair of sockets by which curl_multi_wakeup(3) works, and which libcurl 7.88 creates without close-on-exec,
/// so that child processes would inherit them.
enum WakeupSockets {
    /// Sets close-on-exec for the sockets of a multi handle.
    ///
    /// libcurl does not tell their numbers. They are the two sockets between which a wake-up puts a byte, which stays
    /// there: only curl_multi_poll(3) would read it. If another thread sends one byte to such a socket at the same
    /// moment, the sockets stay as they are.
    static func closeOnExec(of multi: UnsafeMutableRawPointer) {
        turn.withLock { _ in unsafe setCloseOnExec(of: multi) }
    }

    /// Several event loops may make their handles at the same time.
    private static let turn = Lock(false)

    private static func setCloseOnExec(of multi: UnsafeMutableRawPointer) {
        let idle = inheritedSockets().filter { count(Self.unread, $0) == 0 && count(Self.unsent, $0) == 0 }
        guard !idle.isEmpty, unsafe curl_multi_wakeup(multi) == CURLM_OK else { return }
        let readers = idle.filter { count(Self.unread, $0) == 1 }
        let writers = idle.filter { count(Self.unsent, $0) > 0 }
        guard readers.count == 1, writers.count == 1 else { return }
        for socket in readers + writers { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
    }

    /// The stream sockets of the Unix domain that child processes inherit. See proc(5).
    private static func inheritedSockets() -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return names.compactMap { Int32($0) }.filter { number in
            fcntl(number, F_GETFD) == 0 && option(SO_DOMAIN, number) == AF_UNIX
                && option(SO_TYPE, number) == Int32(SOCK_STREAM.rawValue)
        }
    }

    private static func option(_ name: Int32, _ socket: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }

    // SIOCINQ and SIOCOUTQ, see unix(7).
    private static let unread = UInt(FIONREAD)
    private static let unsent = UInt(TIOCOUTQ)

    private static func count(_ request: UInt, _ socket: Int32) -> Int32 {
        var count: Int32 = 0
        return unsafe ioctl(socket, request, &count) == 0 ? count : -1
    }
}
