// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

/// Drives libcurl's multi interface on a loop's thread; the loop is its executor, and so its lock.
///
/// Work comes in as messages for the loop's next turn: what arrives together is handled together, and a task that awaits a
/// response is resumed where it came from, without a stop on the loop.
actor CurlEngine: EventLoopSource {
    /// What requests without options of their own have.
    nonisolated let defaultOptions: SharedTransferOptions
    /// What verifies servers.
    nonisolated let securities = SecurityCache()
    private nonisolated let loop: EventLoop
    private nonisolated let inbox = Lock<[Message]>([])

    let state: LoopState
    /// Nil after ``shutdown()``, which closes the connections with it.
    private(set) var multi: MultiHandle?
    private var active: [ObjectIdentifier: Transfer] = [:]
    private var admissions: AdmissionQueue<Transfer>
    /// The messages of this turn; kept for its storage.
    private var received: [Message] = []
    private var deadlines = DeadlineQueue<Alarm>()
    private var isShutDown = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// Starts the loop's thread.
    init(pool: ConnectionLimits, defaultOptions: TransferOptions) throws(TransportError) {
        _ = try CurlLibrary.current.get()
        self.defaultOptions = SharedTransferOptions(defaultOptions)
        do throws(SystemError) {
            loop = try EventLoop()
        } catch {
            throw .internalInconsistency(error.description, FailureContext())
        }
        state = try LoopState(loop: loop, pool: pool, securities: securities)
        admissions = AdmissionQueue(pool)
        multi = try MultiHandle(reportingTo: state)
        do throws(SystemError) {
            try loop.start(name: "ANCurl", source: self)
        } catch {
            throw .internalInconsistency(error.description, FailureContext())
        }
    }

    /// No exchange is active: each one holds its engine.
    isolated deinit {
        // Closing connections calls back to `state`, which must be there still.
        multi = nil
        loop.stop()
    }

    // MARK: Messages

    /// What others want of the engine.
    enum Message: Sendable {
        /// Start an exchange.
        case add(Exchange)
        /// End an exchange before its time; one that is over already stays as it is.
        case end(Exchange, because: any Error)
        /// The reader has made room: a paused transfer goes on.
        case resumeReceiving(Exchange)
        /// The body's source has more, and a paused transfer goes on; or it failed, and the exchange with it.
        case resumeSending(Exchange)
    }

    /// Sends a message; from any thread, never blocking.
    nonisolated func post(_ message: Message) {
        inbox.withLock { $0.append(message) }
        loop.wake()
    }

    private func receiveMessages() {
        inbox.withLock { swap(&$0, &received) }
        defer { received.removeAll(keepingCapacity: true) }
        for message in received {
            switch message {
            case .add(let exchange): add(exchange)
            case .end(let exchange, let error): end(exchange, because: error)
            case .resumeReceiving(let exchange): resumeReceiving(exchange)
            case .resumeSending(let exchange): resumeSending(exchange)
            }
        }
    }

    private func add(_ exchange: Exchange) {
        guard !exchange.wasCancelled else { return refuse(exchange, CancellationError()) }
        guard !isShutDown else { return refuse(exchange, TransportError.shutDown) }
        do throws(TransportError) {
            let transfer = try Transfer(exchange, loop: state)
            active[ObjectIdentifier(exchange)] = transfer
            transfer.ticket = admissions.enter(transfer, transfer.origin)
            if transfer.ticket == nil { start(transfer) }
            queueDeadline(of: transfer)
            // What the source of its body said before was about a transfer that was not there yet.
            if let error = transfer.uploadError { finish(transfer, .failure(error)) }
        } catch {
            refuse(exchange, error)
        }
    }

    private func refuse(_ exchange: Exchange, _ error: any Error) {
        exchange.events?.receive(.finished(TransferMetrics()))
        finish(exchange, .failure(error))
    }

    /// Gives a transfer to libcurl.
    private func start(_ transfer: Transfer) {
        transfer.ticket = nil
        transfer.state.admitted = state.now
        do throws(TransportError) {
            try transfer.limitTime()
            try multi?.add(transfer.handle)
        } catch {
            finish(transfer, .failure(error))
        }
    }

    private func startWaiting() {
        while let transfer = admissions.next() { start(transfer) }
    }

    private func end(_ exchange: Exchange, because error: any Error) {
        guard let transfer = active[ObjectIdentifier(exchange)] else { return }
        finish(transfer, .failure(error))
    }

    private func resumeReceiving(_ exchange: Exchange) {
        guard let transfer = active[ObjectIdentifier(exchange)], transfer.state.isReceivingPaused else { return }
        transfer.state.isReceivingPaused = false
        resume(transfer)
    }

    private func resumeSending(_ exchange: Exchange) {
        guard let transfer = active[ObjectIdentifier(exchange)] else { return }
        if let error = transfer.uploadError { return finish(transfer, .failure(error)) }
        guard transfer.state.isSendingPaused else { return }
        transfer.state.isSendingPaused = false
        resume(transfer)
    }

    /// Ends all exchanges and refuses further ones.
    func shutdown() {
        isShutDown = true
        for transfer in active.values { finish(transfer, .failure(TransportError.shutDown)) }
        multi = nil
    }

    /// Lets a transfer go on. Bytes that libcurl kept while it was paused arrive within the call; what goes wrong with
    /// them is reported by nothing but its result. See curl_easy_pause(3).
    private func resume(_ transfer: Transfer) {
        transfer.state.clock.noteActivity(at: state.now)
        let code = transfer.handle.resume(
            receiving: !transfer.state.isReceivingPaused, sending: !transfer.state.isSendingPaused)
        if transfer.state.failure != nil { return finish(transfer, transfer.outcome(code)) }
        transfer.noteReadingEnded()
    }

    // MARK: Turns of the loop

    nonisolated func turn(_ ready: [ReadyDescriptor]) -> Int32 {
        assumeIsolated { $0.takeTurn(ready) }
    }

    private func takeTurn(_ ready: [ReadyDescriptor]) -> Int32 {
        state.now = .now
        for descriptor in ready { handle(descriptor) }
        receiveMessages()
        finishCompleted()
        endOverdue()
        startWaiting()
        if state.takeDueTimer() {
            multi?.handleTimeout()
            finishCompleted()
        }
        for socket in state.takeUnread() { handle(ReadyDescriptor(number: socket, readiness: .readable)) }
        finishCompleted()
        state.reviewChanges { transfer in
            if transfer.mustEndEarly { endEarly(transfer) }
            transfer.exchange.flush()
            queueDeadline(of: transfer)
            if transfer.isMultiplexed { admissions.noteMultiplexing(transfer.origin) }
        }
        startWaiting()
        return millisecondsUntilNextTimer
    }

    /// Ends a transfer whose response is over, while its request's body is not.
    private func endEarly(_ transfer: Transfer) {
        guard !transfer.isResponseWhole else { return finish(transfer, transfer.outcome(CURLE_OK)) }
        transfer.state.isBodyEnded = true
        transfer.state.isSendingPaused = false
        transfer.state.clock.noteActivity(at: state.now)
        transfer.handle.resume(receiving: !transfer.state.isReceivingPaused, sending: true)
    }

    private var millisecondsUntilNextTimer: Int32 {
        let next: MonotonicInstant
        switch (state.curlTimer, deadlines.first) {
        case (nil, nil): return -1
        case (let timer?, nil): next = timer
        case (nil, let deadline?): next = deadline
        case (let timer?, let deadline?): next = min(timer, deadline)
        }
        return Int32(MonotonicInstant.now.duration(to: next).wholeMilliseconds)
    }

    func finishCompleted() {
        while let (transfer, code) = multi?.nextFinished() {
            if code != CURLE_OK { transfer.receiveLostAnswer() }
            if transfer.mustRepeat(after: code) {
                repeatRequest(of: transfer)
            } else {
                finish(transfer, transfer.outcome(code))
                if code == CURLE_OK { retireBrokenConnection(of: transfer) }
            }
        }
    }

    /// Sends the request of a transfer again, by another easy handle.
    private func repeatRequest(of transfer: Transfer) {
        do throws(TransportError) {
            let other = try Transfer(repeating: transfer)
            multi?.remove(transfer.handle)
            transfer.leaveStream()
            transfer.isFinished = true
            active[ObjectIdentifier(other.exchange)] = other
            start(other)
            queueDeadline(of: other)
        } catch {
            finish(transfer, .failure(error))
        }
    }

    private func endOverdue() {
        while let (deadline, alarm) = deadlines.popDue(at: state.now) {
            if alarm.deadline == deadline { alarm.deadline = nil }
            guard let transfer = alarm.transfer else { continue }
            if let limit = transfer.nextLimit, limit.deadline <= state.now {
                if transfer.state.isResponseOver, !transfer.state.isBodyEnded {
                    endEarly(transfer)
                    queueDeadline(of: transfer)
                } else {
                    finish(transfer, .failure(transfer.timeoutError(limit)))
                    retireConnection(of: transfer)
                }
            } else {
                queueDeadline(of: transfer)
            }
        }
    }

    /// Ends a connection of HTTP/2 on which nothing has come since the request of this transfer, which ran out of time: it may
    /// be dead, and libcurl would send further requests on it. Over HTTP/1.1, libcurl closes it.
    private func retireConnection(of transfer: Transfer) {
        guard transfer.state.isOnHTTP2, let socket = transfer.state.connection,
            let sent = transfer.state.clock.connected, state.connections.isSilent(socket, since: sent)
        else { return }
        if active.values.contains(where: { $0.state.connection == socket }) {
            state.connections.suspect(socket)
        } else {
            state.retire(socket)
        }
    }

    /// Queues the next deadline of a transfer, unless an earlier one is queued, which will look again.
    private func queueDeadline(of transfer: Transfer) {
        guard let deadline = transfer.nextLimit?.deadline else { return }
        if let queued = transfer.alarm.deadline, queued <= deadline { return }
        transfer.alarm.deadline = deadline
        deadlines.insert(transfer.alarm, at: deadline)
    }

    // MARK: Endings

    func finish(_ transfer: Transfer, _ result: Result<ResponseEnding, any Error>) {
        guard !transfer.isFinished else { return }
        transfer.isFinished = true
        let exchange = transfer.exchange
        if let events = exchange.events { reportEnd(transfer, exchange, result, to: events) }
        multi?.remove(transfer.handle)
        transfer.leaveStream()
        if let socket = transfer.state.connection { state.connections.noteEnd(socket, at: state.now) }
        if let ticket = transfer.ticket {
            admissions.giveUp(ticket, transfer.origin)
        } else {
            admissions.leave(transfer.origin)
        }
        active[ObjectIdentifier(exchange)] = nil
        finish(exchange, result)
    }

    private func finish(_ exchange: Exchange, _ result: Result<ResponseEnding, any Error>) {
        if case .channel(let channel) = exchange.upload { channel.stop() }
        exchange.end(result)
    }

    private func reportEnd(
        _ transfer: Transfer, _ exchange: Exchange, _ result: Result<ResponseEnding, any Error>,
        to events: any TransferEventSink
    ) {
        if exchange.sendsBody { events.receive(.uploadProgress(transfer.uploadProgress)) }
        if transfer.state.parser.isComplete { events.receive(.downloadProgress(transfer.downloadProgress)) }
        let metrics = if case .success(let ending) = result { ending.metrics } else { transfer.measure() }
        events.receive(.finished(metrics))
    }
}
