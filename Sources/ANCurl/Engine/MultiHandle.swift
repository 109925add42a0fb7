// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

/// An owned `CURLM *`, the multi handle of an engine. It is freed on the loop's thread. See libcurl-multi(3).
@safe
struct MultiHandle: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// Creates a multi handle whose callbacks report to `loop`, which must outlive it.
    init(reportingTo loop: LoopState) throws(TransportError) {
        guard let raw = unsafe curl_multi_init() else {
            throw TransportError(.internalInconsistency("curl_multi_init failed."))
        }
        unsafe self.raw = unsafe raw
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
        apply(loop.connectionLimits, isMultiplexing: loop.http2 == .multiplexed)
    }

    deinit {
        // libcurl would otherwise call back during cleanup.
        unsafe _ = ccurl_multi_set_socket_callback(raw, nil, nil)
        unsafe _ = ccurl_multi_set_timer_callback(raw, nil, nil)
        unsafe _ = curl_multi_cleanup(raw)
    }

    /// Sets the limits of the connection pool, and whether exchanges share connections.
    private func apply(_ limits: ConnectionLimits, isMultiplexing: Bool) {
        set(CURLMOPT_MAX_HOST_CONNECTIONS, limits.maximumConnectionsPerHost)
        // libcurl sets no limit for 0.
        set(CURLMOPT_MAX_TOTAL_CONNECTIONS, limits.maximumConnections.map { max(1, $0) } ?? 0)
        set(CURLMOPT_MAX_CONCURRENT_STREAMS, max(1, limits.maximumStreamsPerConnection))
        set(CURLMOPT_MAXCONNECTS, limits.maximumIdleConnections)
        set(CURLMOPT_PIPELINING, Int(isMultiplexing ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING))
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
