// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

extension CurlEngine {
    /// The TLS records of a connection that are read in one turn of the loop: 1 MiB at most, and then others have their turn.
    private static let recordsPerTurn = 64

    /// Lets libcurl work on a socket that is ready; one TLS record at a time if its frames are read ahead.
    func handle(_ ready: ReadyDescriptor) {
        let isWanted = state.isWanted(ready)
        guard let monitor = state.monitors[ready.number], ready.readiness != .writable else {
            if isWanted { multi?.handle(ready) }
            return
        }
        // libcurl reads what waits on an idle connection before it uses the connection again.
        guard isWanted else { return _ = state.readAhead(monitor) }
        var readiness = ready.readiness
        for _ in 0..<Self.recordsPerTurn {
            let progress = state.readAhead(monitor)
            if progress == .nothing { readiness.remove(.readable) }
            let unread = monitor.unreadCount
            if !readiness.isEmpty { multi?.handle(ReadyDescriptor(number: ready.number, readiness: readiness)) }
            review(monitor)
            // libcurl may read a part of a record, or nothing while one of the streams is paused.
            guard progress == .unread, state.monitors[ready.number] === monitor, state.isRead(ready.number),
                monitor.unreadCount < unread
            else { return }
            readiness = .readable
        }
    }

    /// Looks at what the frames of a record mean for transfers, after libcurl has read it.
    private func review(_ monitor: HTTP2Monitor) {
        let ended = monitor.takeEnded()
        for transfer in ended { transfer.noteProgress() }
        if !ended.isEmpty {
            // libcurl looks only now whether nghttp2 gave the connection up.
            multi?.handle(ReadyDescriptor(number: monitor.socket, readiness: .readable))
            finishCompleted()
            for transfer in ended where !transfer.isFinished && transfer.isForgotten {
                transfer.receiveLostAnswer()
                if transfer.isStreamWhole { finish(transfer, transfer.outcome(CURLE_OK)) }
            }
        }
        guard monitor.isBroken else { return }
        finishCompleted()
        // libcurl 7.88 reports the first of several transfers only.
        for transfer in monitor.waiting { finish(transfer, .failure(transfer.streamError)) }
        state.retire(monitor)
    }

    /// Closes a connection on which libcurl took something else for the end of a response: nghttp2 gave it up, and the transfers of
    /// its other streams would wait in vain.
    func retireBrokenConnection(of transfer: Transfer) {
        guard transfer.isStreamCut, transfer.state.stream?.isReset == false, let socket = transfer.state.connection
        else { return }
        state.retire(socket)
    }
}
