// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

extension CurlEngine {
    /// The maximum number of TLS records read from a connection in one turn of the loop: 1 MiB of data. Other
    /// connections follow.
    private static let recordsPerTurn = 64

    /// Lets libcurl process a ready socket. If frames are read ahead, libcurl reads only the TLS records that were
    /// inspected: one, and one more after each transfer that it has processed.
    func handle(_ ready: ReadyDescriptor) {
        let isWanted = state.isWanted(ready)
        if isWanted, !state.upgraded.isEmpty, let transfer = state.upgraded[ready.number] { return serve(transfer) }
        let monitor = state.monitors[ready.number]
        guard isWanted else {
            // libcurl reads the bytes waiting on an idle connection before it reuses the connection.
            if let monitor { _ = state.readAhead(monitor) }
            return closeIfEnded(ready.number)
        }
        guard let monitor, ready.readiness != .writable else {
            guard let ready = withoutHeldInput(ready) else { return }
            if context.defects.contains(.unreadWakeups) { state.readWakeup(ready.number) }
            multi?.handle(ready)
            // A connection whose handshake ends in this turn may send cookies.
            return state.removeOverlays()
        }
        process(ready, monitor)
        review(monitor)
    }

    /// Lets libcurl read the bytes that were inspected and that it has not read. Returns whether it read some and not all:
    /// no event comes for the rest.
    func readUnread() -> Bool {
        var isReading = false
        for socket in state.takeUnread() {
            guard let monitor = state.monitors[socket] else { continue }
            let position = monitor.position
            handle(ReadyDescriptor(number: socket, readiness: .readable))
            if state.isOpen(monitor), monitor.hasRead(since: position), monitor.unreadCount > 0 { isReading = true }
        }
        return isReading
    }

    /// Ends an idle connection that its server has closed. libcurl would do so when it looks for a connection for the next
    /// request; it frees the descriptor then.
    private func closeIfEnded(_ socket: Int32) {
        guard Transfer.hasEnded(socket) else { return }
        let users = active.values.filter { $0.usedSocket == socket }
        guard users.isEmpty else { return users.forEach(state.noteChange) }
        state.retire(socket)
    }

    private func process(_ ready: ReadyDescriptor, _ monitor: HTTP2Monitor) {
        var readiness = ready.readiness
        let limit = monitor.recordCount + Self.recordsPerTurn
        // Other calls to libcurl must not take a record from the socket: nothing would make libcurl read it.
        defer { monitor.recordLimit = 0 }
        while monitor.recordCount < limit {
            let progress = state.readAhead(monitor)
            if progress == .nothing { readiness.remove(.readable) }
            monitor.recordLimit = progress == .unread ? limit : 0
            let position = monitor.position
            if !readiness.isEmpty { multi?.handle(ReadyDescriptor(number: ready.number, readiness: readiness)) }
            if monitor.isBroken { return }
            // libcurl may read part of a record, or nothing while one of the streams is paused.
            guard progress == .unread, state.isOpen(monitor), state.isRead(ready.number),
                monitor.hasRead(since: position) || monitor.isOver
            else {
                if context.defects.contains(.watchedPauses), progress == .unread, state.isOpen(monitor),
                    !monitor.hasRead(since: position)
                {
                    state.stopReading(ready.number)
                }
                return
            }
            readiness = .readable
        }
    }

    /// Applies the events in the inspected frames to transfers, after libcurl has read them.
    private func review(_ monitor: HTTP2Monitor) {
        finishCompleted()
        state.reviewClosing(monitor)
        if monitor.takeSettings(), let transfer = monitor.waiting.first {
            transfer.hasNotedMultiplexing = false
            state.noteChange(of: transfer)
        }
        let ended = monitor.takeEnded().filter { !$0.isFinished }
        for transfer in ended {
            transfer.noteProgress()
            state.noteChange(of: transfer)
        }
        if !ended.isEmpty || monitor.isBroken {
            // The last record that was inspected may not have been read. libcurl checks only at this point whether
            // nghttp2 has terminated the session.
            multi?.handle(ReadyDescriptor(number: monitor.socket, readiness: .readable))
            finishCompleted()
            for transfer in ended { finishForgotten(transfer) }
        }
        guard monitor.isBroken else { return }
        // libcurl 7.88 reports only the first of several transfers.
        for transfer in monitor.waiting { giveUpStream(of: transfer) }
        state.retire(monitor)
    }

    /// Ends an exchange on which libcurl makes no progress although the server has ended or reset its stream.
    func finishForgotten(_ transfer: Transfer) {
        guard !transfer.isFinished, transfer.isForgotten, let stream = transfer.state.connection.stream else { return }
        transfer.receiveLostAnswer()
        if transfer.isStreamWhole {
            finish(transfer, transfer.outcome(CURLE_OK))
        } else if !stream.isEnded {
            giveUpStream(of: transfer)
        }
    }

    /// Ends an exchange whose stream cannot continue, or sends its request again if the server has rejected it. libcurl
    /// may already do that: it tells so when it makes a connection, but not while it waits for one.
    private func giveUpStream(of transfer: Transfer) {
        guard !transfer.isFinished, transfer.state.clock.connected != nil else { return }
        if transfer.mayRepeatRejected {
            repeatRequest(of: transfer)
        } else {
            finish(transfer, .failure(transfer.streamError))
        }
    }

    /// Shuts down the HTTP/2 connection of a transfer whose time limit expired if nothing has been received on it for
    /// the idle limit or since the request: it may be dead, and libcurl would send further requests on it. If it carries
    /// other exchanges, they go on, and later ones share another connection. Over HTTP/1.1, libcurl closes it.
    func retireConnection(of transfer: Transfer, after limit: TransferClock.Limit) {
        guard transfer.state.connection.isHTTP2, let socket = transfer.state.connection.socket,
            let sent = transfer.state.clock.connected,
            state.connections.isSilent(socket, after: limit.kind == .idle ? limit.since : sent)
        else { return }
        if isInUse(socket) {
            state.connections.suspect(socket)
        } else {
            state.retire(socket)
        }
    }

    /// Closes a connection on which libcurl misinterpreted an event as the end of a response: nghttp2 has terminated
    /// the session, and the transfers of its other streams would never finish.
    func retireConnection(_ monitor: HTTP2Monitor, brokenFor transfer: Transfer) {
        if transfer.isStreamCut, transfer.state.connection.stream?.isReset == false { state.retire(monitor) }
    }
}
