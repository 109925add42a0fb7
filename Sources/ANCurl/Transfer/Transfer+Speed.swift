// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

// Transfers whose speed is limited are paused as those whose reader or source is slow, and go on when the schedule says so.
// One that is resumed for another reason asks the schedule again.

extension Transfer {
    /// Whether the body may be received now. If not, the transfer is resumed later.
    func mayReceive() -> Bool {
        speedLimits.isEmpty || loop.receiving.mayTake(self, speedLimits, at: loop.now)
    }

    /// Whether the body may be sent now. If not, the transfer is resumed later.
    func maySend() -> Bool {
        speedLimits.isEmpty || loop.sending.mayTake(self, speedLimits, at: loop.now)
    }

    /// Notes bytes that were received or sent.
    func noteLimited(_ count: Int, in schedule: ReferenceWritableKeyPath<LoopState, SpeedSchedule<Transfer>>) {
        guard !speedLimits.isEmpty else { return }
        loop[keyPath: schedule].take(count, by: self, speedLimits, at: loop.now)
    }

    /// Returns the part of a buffer that is filled at once.
    func limited(_ buffer: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        guard let rate = speedLimits.compactMap(\.bytesSentPerSecond).min() else { return unsafe buffer }
        let count = min(buffer.count, rate < 1 << 20 ? 4 << 10 : 16 << 10)
        return unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count))
    }
}

extension CurlEngine {
    /// Resumes transfers that waited because of their limits.
    func resumeLimited() {
        while let transfer = state.receiving.next(at: state.now) {
            if transfer.state.receiving.resume() { resume(transfer) }
        }
        while let transfer = state.sending.next(at: state.now) {
            if transfer.state.sending.resume() { resume(transfer) }
        }
    }

    /// Removes a transfer that has ended.
    func removeLimited(_ transfer: Transfer) {
        guard !transfer.speedLimits.isEmpty else { return }
        state.receiving.remove(transfer, at: state.now)
        state.sending.remove(transfer, at: state.now)
    }
}

extension [SpeedLimit] {
    /// Returns the limits that apply to the host of a URL.
    ///
    /// - Throws: ``ANHTTP/TransportError/Reason/invalidRequest(_:)`` for a limit with an invalid host.
    func applying(to url: URL) throws(TransportError) -> [SpeedLimit] {
        guard !isEmpty else { return [] }
        let host = HostName(url)
        do throws(SecurityPolicy.ConfigurationError) {
            for limit in self { try limit.host?.check() }
        } catch {
            throw TransportError(.invalidRequest(.option(error.description)))
        }
        return filter { $0.host?.matches(host) ?? true }
    }
}
