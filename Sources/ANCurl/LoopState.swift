// SPDX-License-Identifier: MIT

import ANSystem
import CCurl

/// What an engine and libcurl's callbacks share; it is touched on the loop's thread only.
final class LoopState {
    /// The time at the start of this turn of the loop, which is exact enough for timers.
    var now = MonotonicInstant.now
    /// When libcurl wants to be called.
    private(set) var curlTimer: MonotonicInstant?
    /// Transfers whose readers may have to be woken at the end of this turn.
    private var unflushed: [Transfer] = []
    private var sockets = SocketTable()
    private let loop: EventLoop

    init(loop: EventLoop) {
        self.loop = loop
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
    }

    /// Whether libcurl waits for a socket that is ready; one that it does not wait for leaves the set.
    func isWanted(_ ready: ReadyDescriptor) -> Bool {
        if sockets.isWanted(ready.number) { return true }
        loop.epoll.remove(ready.number)
        return false
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

    // MARK: Readers

    /// Notes that a reader may have to be woken; for all that arrives in one turn it is woken once.
    func flushLater(_ transfer: Transfer) {
        guard !transfer.isUnflushed else { return }
        transfer.isUnflushed = true
        unflushed.append(transfer)
    }

    func flush() {
        for transfer in unflushed {
            transfer.isUnflushed = false
            transfer.exchange?.flush()
        }
        unflushed.removeAll(keepingCapacity: true)
    }
}
