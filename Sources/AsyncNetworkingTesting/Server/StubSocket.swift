// SPDX-License-Identifier: MIT

import ANSystem
import CLinux
import Glibc

/// An accepted connection, which its own thread reads and writes with blocking calls.
///
/// Another thread can wake a blocked call with shutdown(2).
struct StubSocket: ~Copyable {
    let descriptor: FileDescriptor
    private var tls: TLSSession?

    init(takingOwnershipOf number: Int32) {
        descriptor = FileDescriptor(takingOwnershipOf: number)
        // Sent bytes are transmitted at once, so that a reset occurs where the script says. See tcp(7).
        var on: Int32 = 1
        unsafe setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Performs the TLS handshake; all further data is encrypted.
    mutating func startTLS(_ context: TLSContext) throws(OpenSSLError) -> RecordedRequest.TLSSummary {
        var session = try TLSSession(context, descriptor: descriptor.number)
        try session.accept()
        let summary = session.summary
        tls = consume session
        return summary
    }

    /// Reads available bytes, and waits for at least one; returns 0 at the end of the connection.
    mutating func receive(into buffer: inout [UInt8]) throws -> Int {
        if let count = try tls?.receive(into: &buffer) { return count }
        let count = retryingInterrupts {
            unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor.number, $0.baseAddress, $0.count, 0) }
        }
        guard count >= 0 else { throw SystemError.last("recv") }
        return count
    }

    /// Writes all bytes.
    mutating func send(_ bytes: ArraySlice<UInt8>) throws {
        if try tls?.send(bytes) != nil { return }
        var rest = bytes
        while !rest.isEmpty {
            let count = retryingInterrupts {
                unsafe rest.withUnsafeBytes {
                    unsafe Glibc.send(descriptor.number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
            }
            guard count >= 0 else { throw SystemError.last("send") }
            rest = rest.dropFirst(count)
        }
    }

    /// Waits for a duration, or without limit if it is `nil`, or until another descriptor is readable.
    ///
    /// Returns whether the client closed the connection or the server was stopped meanwhile. A client that has shut
    /// down its sending side counts as having closed the connection.
    func waitForHangUp(_ duration: Duration?, or other: Int32 = -1) -> Bool {
        let deadline = duration.map { MonotonicInstant.now.advanced(by: $0) }
        while true {
            let left = deadline.map { MonotonicInstant.now.duration(to: $0).clampedNanoseconds }
            if let left, left <= 0 { return false }
            // Rounded up, so that the wait is never too short.
            let milliseconds = left.map { Int32(clamping: $0 / 1_000_000 + 1) } ?? -1
            // POLLRDHUP, which Glibc does not define here, equals EPOLLRDHUP; a negative descriptor is ignored. See
            // poll(2).
            var entries = [
                pollfd(fd: descriptor.number, events: Int16(CLINUX_EPOLLRDHUP), revents: 0),
                pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&entries, 2, milliseconds) > 0 else { continue }
            return entries[0].revents != 0
        }
    }

    /// Whether received bytes have not been read.
    var hasUnreadBytes: Bool {
        var byte: UInt8 = 0
        return unsafe recv(descriptor.number, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    /// Announces the end of sending to a TLS client.
    mutating func announceEnd() {
        tls?.finishSending()
    }

    /// Shuts down the sending side; reading remains possible.
    mutating func finishSending() {
        shutdown(descriptor.number, Int32(SHUT_WR))
    }

    /// Makes the following close(2) send RST, after all sent bytes have been transmitted.
    func prepareReset() {
        // SO_LINGER with 0 discards unsent bytes: wait until there are no more (SIOCOUTQNSD counts bytes not yet
        // transmitted).
        let unsentBytes: UInt = 0x894B
        var count: Int32 = 0
        while unsafe ioctl(descriptor.number, unsentBytes, &count) == 0, count > 0 {
            if waitForHangUp(.milliseconds(1)) { break }
        }
        var now = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(descriptor.number, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }
}

/// Limits the bytes that are sent next, according to a pace and an ending after a number of bytes.
///
/// The meter is pure: ``next(_:)`` returns what to do with bytes that are ready, and the caller does it.
package struct OutputMeter {
    private var pace: Script.Pace?
    /// The number of bytes left before the next pause.
    private var leftBeforePause = 0
    private var cut: (left: Int64, ending: Script.Ending)?

    /// Creates a meter without limits.
    package init() {}

    /// Sets or removes the pace of the following bytes; the first piece is sent without a pause.
    package mutating func setPace(_ pace: Script.Pace?) {
        self.pace = pace
        leftBeforePause = pace?.bytes ?? 0
    }

    /// Ends the connection after the given number of further bytes.
    package mutating func setCut(after bytes: Int64, by ending: Script.Ending) {
        cut = (max(0, bytes), ending)
    }

    /// The ending that was set, due at the end of the script at the latest; `nil` without one.
    package var pendingEnding: Script.Ending? { cut?.ending }

    /// Returns what to do with `count` bytes that are ready, at least one.
    package mutating func next(_ count: Int) -> Step {
        var count = count
        if let cut {
            guard cut.left > 0 else { return .end(cut.ending) }
            count = Int(min(Int64(count), cut.left))
        }
        if let pace {
            guard leftBeforePause > 0 else {
                leftBeforePause = pace.bytes
                return .wait(pace.interval)
            }
            count = min(count, leftBeforePause)
            leftBeforePause -= count
        }
        if let cut { self.cut = (cut.left - Int64(count), cut.ending) }
        return .send(count)
    }

    /// An instruction for the sender.
    package enum Step: Hashable {
        /// Send the given number of bytes.
        case send(Int)
        /// Wait, and call ``OutputMeter/next(_:)`` again.
        case wait(Duration)
        /// End the connection.
        case end(Script.Ending)
    }
}
