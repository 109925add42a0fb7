// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import CCurl

/// Drives libcurl's multi interface on the event loop's thread. The loop is the actor's executor, which serializes
/// access.
///
/// Other threads post messages, which are handled together in the loop's next turn. A task that awaits a response
/// resumes on its own executor, without a hop through the loop.
actor CurlEngine {
    /// The owner of an engine, from which the loop receives its turns as long as it exists. The loop refers to it weakly:
    /// each reference to an object that is referred to weakly is slow.
    final class Owner: EventLoopSource {
        let engine: CurlEngine

        /// Creates an engine and starts the loop's thread.
        init(_ context: EngineContext, index: Int) throws(TransportError) {
            engine = try CurlEngine(context, index: index)
            engine.loop.setSource(self)
        }

        func turn(_ ready: [ReadyDescriptor]) -> Int32 {
            engine.takeTurnOnLoop(ready)
        }
    }

    /// The settings and the state common to the event loops of the transport.
    nonisolated let context: EngineContext
    /// The number of this engine in its group.
    nonisolated let index: Int
    private nonisolated let loop: EventLoop
    /// Runs tasks on the loop's thread, and retains that thread.
    nonisolated let taskExecutor: EventLoopExecutor
    private nonisolated let inbox = Lock<[Message]>([])
    let state: LoopState
    /// The multi handle; `nil` after ``shutdown()``, which frees it and closes its connections.
    @safe @exclusivity(unchecked) private(set) var multi: MultiHandle?
    @safe @exclusivity(unchecked) private(set) var active: [ObjectIdentifier: Transfer] = [:]
    /// The time since which no exchange is active, if there may be connections; otherwise `nil`, or an earlier time.
    @safe @exclusivity(unchecked) private var idleSince: MonotonicInstant?
    /// Whether capacity was released, or became larger, since waiting exchanges were last admitted.
    @safe @exclusivity(unchecked) private var mayAdmit = false
    /// The connections that take no new requests, by origin, as the dispatcher knows them.
    @safe @exclusivity(unchecked) private var draining: [String: DrainingConnections] = [:]
    /// The connections on which HTTP/2 streams were left since the last turn.
    @safe @exclusivity(unchecked) private var resets: Set<Int32> = []
    /// The transfers that were resumed since libcurl's timer has expired, with ``CurlDefects/latePauses``.
    @safe @exclusivity(unchecked) private var resumed: [Transfer] = []
    /// The messages of this turn; a property so that its storage is reused.
    @safe @exclusivity(unchecked) private var received: [Message] = []
    @safe @exclusivity(unchecked) private var deadlines = PriorityQueue<Transfer, MonotonicInstant>()
    /// The time at which the next turn is due; `nil` if it waits for an event only.
    @safe @exclusivity(unchecked) private var due: MonotonicInstant?
    @safe @exclusivity(unchecked) private var lateness = LoopLateness()
    @safe @exclusivity(unchecked) private var connecting = ConnectingShare()

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    private init(_ context: EngineContext, index: Int) throws(TransportError) {
        self.context = context
        self.index = index
        do throws(SystemError) {
            loop = try EventLoop()
            // Before the actor exists, which could not be freed without its thread.
            try loop.start(name: "ANCurl")
        } catch {
            throw TransportError(.internalInconsistency(error.description))
        }
        taskExecutor = EventLoopExecutor(loop)
        state = LoopState(loop, context, index: index)
        multi = try MultiHandle(reportingTo: state)
    }

    /// No exchange is active here: each exchange retains its engine.
    isolated deinit {
        // Closing connections calls back to `state`, which must still be alive.
        multi = nil
    }

    // MARK: Messages

    /// A message to the engine, handled in the loop's next turn.
    enum Message: Sendable {
        /// Starts an exchange.
        case add(Exchange)
        /// Starts an exchange that has waited, or moves it to another loop; ignored if the exchange is already over.
        case admit(Exchange)
        /// Ends an exchange with an error; ignored if the exchange is already over.
        case end(Exchange, because: any Error)
        /// Resumes a transfer that was paused because the reader's buffer was full.
        case resumeReceiving(Exchange)
        /// Resumes a transfer that was paused because its body's source had no bytes, or fails it if the source failed.
        case resumeSending(Exchange)
        /// Performs the commands of a WebSocket connection's tasks, or reads it again after a pause.
        case serveWebSocket(Exchange)
        /// Closes the connection that has been idle longest, of the given origin or of any.
        case closeIdle(of: String?)
    }

    /// Posts a message. Callable from any thread; never blocks.
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
            case .admit(let exchange): active[ObjectIdentifier(exchange)].map { proceed($0, hasWaited: true) }
            case .end(let exchange, let error): end(exchange, because: error)
            case .resumeReceiving(let exchange): resumeReceiving(exchange)
            case .resumeSending(let exchange): resumeSending(exchange)
            case .serveWebSocket(let exchange): active[ObjectIdentifier(exchange)].map(serve)
            case .closeIdle(let origin):
                state.retireIdle(of: origin, except: Set(active.values.compactMap { $0.state.connection.socket }))
            }
        }
    }

    private func add(_ exchange: Exchange) {
        guard !exchange.wasCancelled else { return refuse(exchange, CancellationError()) }
        guard context.dispatcher.accepts(exchange.request) else { return refuse(exchange, TransportError(.shutDown)) }
        do throws(TransportError) {
            let transfer = try Transfer(exchange, loop: state)
            active[ObjectIdentifier(exchange)] = transfer
            proceed(transfer, hasWaited: false)
        } catch {
            refuse(exchange, error)
        }
    }

    /// Starts a transfer that was admitted, here or on another loop, or lets it wait.
    private func proceed(_ transfer: Transfer, hasWaited: Bool) {
        guard transfer.state.admitted == nil else { return }
        guard case .admitted(let loop)? = transfer.exchange.admission else { return queueDeadline(of: transfer) }
        // A signature is valid for a few minutes: the request is signed again.
        let isOutdated = hasWaited && transfer.exchange.authentication?.signature != nil
        guard loop != index || isOutdated else { return start(transfer) }
        noteFinished(transfer)
        active[ObjectIdentifier(transfer.exchange)] = nil
        if active.isEmpty { idleSince = state.now }
        transfer.exchange.move(to: transfer.exchange.group.engine(loop), entered: transfer.state.clock.start)
    }

    private func refuse(_ exchange: Exchange, _ error: any Error) {
        leave(exchange, connected: false)
        exchange.events?.receive(.finished(TransferMetrics()))
        finish(exchange, .failure(error))
    }

    /// Adds a transfer to libcurl's multi handle.
    private func start(_ transfer: Transfer) {
        transfer.state.admitted = state.now
        do throws(TransportError) {
            try transfer.limitTime()
            try transfer.followGeneration()
            multi?.raiseLimits(by: context.dispatcher.longLived)
            if context.defects.contains(.countedResolvers), context.limits.maximumConnections != nil,
                transfer.exchange.usesResolver
            {
                let resolving = active.values.count { $0.exchange.usesResolver && $0.state.admitted != nil }
                multi?.raiseLimit(byResolving: resolving)
            }
            try multi?.add(transfer.handle)
            queueDeadline(of: transfer)
        } catch {
            finish(transfer, .failure(error))
        }
    }

    private func startWaiting() {
        followConnections()
        guard mayAdmit else { return }
        mayAdmit = false
        while let (exchange, engine) = context.dispatcher.admit(on: index) {
            if engine !== self {
                engine.post(.admit(exchange))
            } else if let transfer = active[ObjectIdentifier(exchange)] {
                proceed(transfer, hasWaited: true)
            }
        }
    }

    private func leave(_ exchange: Exchange, connected: Bool, drains: Bool = false) {
        context.dispatcher.leave(exchange, connected: connected, drains: drains)
        mayAdmit = true
    }

    private func end(_ exchange: Exchange, because error: any Error) {
        guard let transfer = active[ObjectIdentifier(exchange)] else { return }
        finish(transfer, .failure(error))
    }

    /// Ends all exchanges that are not accepted any more.
    func endExchanges() {
        for transfer in active.values where !context.dispatcher.accepts(transfer.exchange.request) {
            finish(transfer, .failure(TransportError(.shutDown)))
        }
    }

    /// Ends all exchanges and rejects further ones.
    func shutdown() {
        endExchanges()
        multi = nil
    }

    // MARK: Turns of the loop

    /// Takes a turn, on the loop's thread.
    ///
    /// `assumeIsolated` asks the runtime, which knows nothing of turns, for 400 instructions in each; here it is asked in
    /// debug builds only.
    private nonisolated func takeTurnOnLoop(_ ready: [ReadyDescriptor]) -> Int32 {
        #if DEBUG
            preconditionIsolated()
        #endif
        let takeTurn = unsafe unsafeBitCast(Self.turn, to: (@Sendable (CurlEngine, [ReadyDescriptor]) -> Int32).self)
        return takeTurn(self, ready)
    }

    private static let turn: @Sendable (isolated CurlEngine, [ReadyDescriptor]) -> Int32 = { $0.takeTurn($1) }

    private func takeTurn(_ ready: [ReadyDescriptor]) -> Int32 {
        state.now = .now
        excuseLateness()
        let leavesSome = handle(ready)
        receiveMessages()
        finishCompleted()
        let isBehind = connecting.mayHideBytes(leavingSome: leavesSome, at: state.now)
        // A turn that has left some descriptors is not one of those in which all are read.
        let isLate = isBehind ? lateness.isOngoing : lateness.mayHideBytes(afterReadingFrom: ready.count)
        if !isLate { endOverdue(isBehind: isBehind) }
        resumeLimited()
        startWaiting()
        if state.takeDueTimer() {
            handleTimers()
            finishCompleted()
        }
        pauseOverfull()
        sendResets()
        let isReading = readUnread()
        finishCompleted()
        state.reviewChanges { transfer in
            transfer.noteReadingEnded()
            if transfer.isLostUnseen {
                // Not repeated: the body could begin again only once its source gives the next bytes.
                finish(transfer, transfer.outcome(CURLE_RECV_ERROR))
            } else if transfer.isAheadOfRequest {
                endResponse(of: transfer)
            }
            transfer.exchange.flush()
            queueDeadline(of: transfer)
            noteMultiplexing(of: transfer)
        }
        resumeAttempts()
        startWaiting()
        closeConnectionsOfIdleLoop()
        let timeout = millisecondsUntilNextTimer()
        return isReading ? 0 : timeout == 0 && ready.isEmpty && isHastyForPauses ? 1 : timeout
    }

    /// Whether libcurl's timer may have nothing to do. See ``CurlDefects/hastyPauses`` and ``CurlDefects/sendingReads``.
    private var isHastyForPauses: Bool {
        if context.defects.contains(.sendingReads) { return state.paused.values.contains { !$0.held.isEmpty } }
        return context.defects.contains(.hastyPauses)
            && active.values.contains { $0.state.connection.isHTTP2 && $0.state.receiving.isPaused }
    }

    /// Closes connections that take no new requests when they are idle, counts the others, and lets requests that wait use
    /// those of new requests.
    private func followConnections() {
        guard state.connections.takeChange() else { return }
        var users: [Int32: [Transfer]] = [:]
        for transfer in active.values {
            guard let socket = transfer.state.connection.socket, state.connections.isReplaced(socket) else { continue }
            users[socket, default: []].append(transfer)
        }
        for socket in state.connections.replaced where users[socket] == nil { state.retire(socket) }
        var draining: [String: DrainingConnections] = [:]
        for transfers in users.values {
            draining[transfers[0].origin, default: DrainingConnections()].add(transfers.map(\.exchange.place.use))
        }
        let former = self.draining.mapValues { _ in DrainingConnections?.none }
        context.dispatcher.note(former.merging(draining.mapValues(Optional.some)) { $1 }, on: index)
        self.draining = draining
        mayAdmit = true
        multi?.raiseLimits(by: context.dispatcher.longLived)
        let isRaised = multi?.takeRaise() == true
        for transfer in active.values {
            if isRaised ? transfer.isQueued : transfer.waitsForOldGeneration {
                multi?.remove(transfer.handle)
                start(transfer)
            } else if isRaised, transfer.mayRepeatUnprocessed {
                // libcurl may be waiting to send it again, of which it tells nothing.
                repeatRequest(of: transfer)
            }
        }
    }

    /// When the connections are closed if no exchange begins. libcurl closes idle ones that are too old, or that their servers
    /// have closed, only when an exchange begins on the same loop.
    private var idleEnd: MonotonicInstant? {
        guard active.isEmpty, multi != nil else { return nil }
        return idleSince?.advanced(by: .seconds(1 + max(1, context.limits.maximumIdleAge.wholeSeconds)))
    }

    private func closeConnectionsOfIdleLoop() {
        guard let idleEnd, idleEnd <= state.now else { return }
        do throws(TransportError) {
            multi = try MultiHandle(reportingTo: state)
            idleSince = nil
        } catch {
            // Without a free descriptor, there may be one later.
            idleSince = state.now
        }
    }

    /// Makes libcurl try the next address of a name: a change of the pauses is what makes it look at a transfer soon. See
    /// curl_easy_pause(3).
    private func resumeAttempts() {
        let lost = state.takeLostAttempts()
        guard !lost.isEmpty else { return }
        for transfer in active.values
        where transfer.state.clock.connected == nil && !lost.isDisjoint(with: transfer.state.connection.sockets) {
            transfer.handle.resume(receiving: true, sending: false)
            transfer.handle.resume(receiving: true, sending: true)
        }
    }

    /// Lets libcurl process the ready sockets, last those of connections that are being made. Returns whether some are left,
    /// for which the next turn begins at once.
    private func handle(_ ready: [ReadyDescriptor]) -> Bool {
        let late = ready.filter { state.isConnecting($0.number) }
        for descriptor in ready where !state.isConnecting(descriptor.number) { handle(descriptor) }
        guard !late.isEmpty else { return false }
        let start = MonotonicInstant.now
        for (index, descriptor) in connecting.ordered(late).enumerated() {
            handle(descriptor)
            if !connecting.note(descriptor.number, since: start, at: .now) { return index + 1 < late.count }
        }
        return false
    }

    /// Extends the limits of all transfers if this turn is late, because the process was stopped or a task blocked the
    /// loop's executor. What has arrived meanwhile is read in the next turns.
    private func excuseLateness() {
        guard let due, due.advanced(by: .milliseconds(100)) < state.now else { return }
        for transfer in active.values {
            transfer.state.clock.excuse(due.duration(to: state.now))
            if transfer.state.clock.connected == nil { try? transfer.limitConnecting() }
        }
        lateness.begin(descriptors: active.count)
    }

    /// Determines when the next turn is due.
    private func millisecondsUntilNextTimer() -> Int32 {
        due = Self.earlier(Self.earlier(state.curlTimer, deadlines.first), idleEnd)
        // Asked in each turn of the loop.
        if !state.receiving.isEmpty { due = Self.earlier(due, state.receiving.due(at: state.now)) }
        if !state.sending.isEmpty { due = Self.earlier(due, state.sending.due(at: state.now)) }
        guard let time = due else { return -1 }
        // The next turn is late if something holds it up, or has held up this one, but not because a deadline has passed.
        let now = MonotonicInstant.now
        let isHeldUp = state.now.advanced(by: .seconds(1)) < now
        due = max(time, isHeldUp ? state.now : now)
        return Int32(now.duration(to: time).wholeMilliseconds)
    }

    func finishCompleted() {
        state.removeOverlays()
        while let (transfer, code) = multi?.nextFinished() {
            if code == CURLE_OK, let channel = transfer.exchange.webSocket {
                upgrade(transfer, channel)
                continue
            }
            let monitor = transfer.state.connection.monitor
            var leavesAlternative = false
            if code != CURLE_OK {
                leavesAlternative = transfer.leavesAlternative(after: .error(code))
                // GOAWAY may wait behind a failure to send.
                if let monitor { _ = state.readAhead(monitor) }
                transfer.receiveLostAnswer()
                transfer.receiveUnreadResponse()
            }
            if leavesAlternative || transfer.mustRepeat(after: code) {
                repeatRequest(of: transfer)
            } else {
                finish(transfer, transfer.outcome(code))
                if code == CURLE_OK, let monitor { retireConnection(monitor, brokenFor: transfer) }
            }
        }
    }

    /// Sends a transfer's request again, with another easy handle, and later if the server is overloaded.
    func repeatRequest(of transfer: Transfer) {
        let pause =
            transfer.mayRepeatLater
            ? HTTP2Stream.pause(attempts: transfer.state.repeating.attempts) * Double.random(in: 0.75...1.25) : nil
        multi?.remove(transfer.handle)
        // Before the other transfer takes over the state. Otherwise the connection's monitor would release this one,
        // and free its handle, when the other one joins a stream, in a callback of libcurl's.
        transfer.leaveConnection()
        do throws(TransportError) {
            let other = try Transfer(repeating: transfer)
            noteFinished(transfer)
            active[ObjectIdentifier(other.exchange)] = other
            guard let pause else { return start(other) }
            other.startTime = state.now.advanced(by: pause)
            queueDeadline(of: other)
        } catch {
            finish(transfer, .failure(error))
        }
    }

    /// Adds a transfer to the multi handle again, where it does not wait for the handshakes of others.
    private func connectAlone(_ transfer: Transfer) {
        multi?.remove(transfer.handle)
        do throws(CurlFailure) {
            try transfer.awaitHandshakes(false)
            start(transfer)
        } catch {
            finish(transfer, .failure(error.transportError))
        }
    }

    /// - Parameter isBehind: Whether connections that are being made may have bytes that were not read.
    private func endOverdue(isBehind: Bool) {
        while let transfer = deadlines.popDue(at: state.now) {
            if isBehind, transfer.state.connection.sockets.contains(where: state.isConnecting) {
                try? transfer.limitConnecting()
                deadlines.insert(transfer, at: state.now.advanced(by: .milliseconds(10)))
                continue
            }
            transfer.noteDelivery()
            if let connection = transfer.connection, connection.isOpen {
                reviewLimits(of: transfer, connection)
            } else if let time = transfer.startTime, time <= state.now {
                transfer.startTime = nil
                start(transfer)
            } else if let end = transfer.handshakeWaitEnd, end <= state.now {
                connectAlone(transfer)
            } else if let time = transfer.state.receiving.handOverTime, time <= state.now {
                transfer.state.receiving.handOverTime = nil
                transfer.exchange.handOver()
                queueDeadline(of: transfer)
            } else if let limit = transfer.nextLimit, limit.deadline <= state.now {
                if transfer.state.receiving.isOver, transfer.state.sending.body != .ended {
                    endEarly(transfer)
                    queueDeadline(of: transfer)
                } else if limit.kind == .idle, let connection = transfer.connection, connection.isRefused {
                    endRefusal(of: transfer, connection)
                } else if transfer.leavesAlternative(
                    after: transfer.alternativeLimit == limit ? .connectLimit : .limit)
                {
                    repeatRequest(of: transfer)
                } else {
                    finish(transfer, .failure(transfer.timeoutError(limit)))
                    retireConnection(of: transfer, after: limit)
                }
            } else {
                queueDeadline(of: transfer)
            }
        }
    }

    /// Queues a transfer's next deadline, unless an earlier one is queued; when that one is due, the deadline is
    /// computed again.
    private func queueDeadline(of transfer: Transfer) {
        guard !transfer.isFinished else { return }
        let limit = transfer.nextLimit
        var next = Self.earlier(transfer.startTime, limit?.deadline)
        next = Self.earlier(next, transfer.state.receiving.handOverTime)
        next = Self.earlier(next, transfer.handshakeWaitEnd)
        if transfer.countsQueue, transfer.state.clock.connected == nil {
            try? transfer.limitConnecting()
            next = Self.earlier(next, transfer.nextConnectLimit)
        }
        if let limit, limit.kind == .idle, transfer.isDelivering {
            // Looks several times within the limit whether the system delivers the request.
            next = Self.earlier(next, state.now.advanced(by: max(.milliseconds(10), limit.duration / 4)))
        }
        if let next { deadlines.insert(transfer, at: next) }
    }

    private static func earlier(_ first: MonotonicInstant?, _ second: MonotonicInstant?) -> MonotonicInstant? {
        guard let first, let second else { return first ?? second }
        return min(first, second)
    }

    /// Lets libcurl process its expired timers.
    func handleTimers() {
        multi?.handleTimeout()
        // From 8.10 to 8.11, libcurl forgets a timer that has expired a little early for it.
        if state.curlTimer == nil, let next = multi?.nextTimeout { state.setTimer(next) }
        for transfer in resumed {
            transfer.state.receiving.isRestComing = false
            state.noteChange(of: transfer)
        }
        resumed = []
    }

    // MARK: Endings

    func finish(_ transfer: Transfer, _ result: Result<ResponseEnding, any Error>) {
        guard !transfer.isFinished else { return }
        noteFinished(transfer)
        let exchange = transfer.exchange
        if let events = exchange.events { transfer.reportEnd(result, to: events) }
        if context.defects.contains(.keptLookups) { noteLookup(of: transfer, result) }
        exchange.webSocket?.disconnect()
        let hasFailed = (try? result.get()) == nil
        let isSpoilt = transfer.isExclusive && hasFailed
        if isSpoilt { transfer.reviewReuse(after: .failed) }
        multi?.remove(transfer.handle)
        transfer.leaveConnection()
        if let socket = transfer.state.connection.socket {
            // libcurl itself may have ended the transfer, and kept the connection.
            if isSpoilt { state.retire(socket) }
            state.connections.noteEnd(socket, at: state.now)
        }
        let drains = transfer.state.connection.socket.map(state.connections.isReplaced) ?? false
        leave(exchange, connected: transfer.state.clock.connected != nil, drains: drains)
        active[ObjectIdentifier(exchange)] = nil
        if active.isEmpty { idleSince = state.now }
        if hasFailed, context.defects.contains(.unsentResets), transfer.isMultiplexed,
            let socket = transfer.state.connection.socket
        {
            resets.insert(socket)
        }
        finish(exchange, result)
        state.didLeave(transfer.state.connection.socket)
    }

    /// Lets libcurl send the resets of streams that were left; a connection without others is closed. See
    /// ``CurlDefects/unsentResets``.
    private func sendResets() {
        guard !resets.isEmpty else { return }
        for socket in resets {
            if isInUse(socket) {
                multi?.handle(ReadyDescriptor(number: socket, readiness: .writable))
            } else {
                state.retire(socket)
            }
        }
        resets = []
    }

    /// Whether an exchange uses a connection.
    func isInUse(_ socket: Int32) -> Bool { active.values.contains { $0.state.connection.socket == socket } }

    /// Notes whether the name of a transfer's server was found, if that is known.
    private func noteLookup(of transfer: Transfer, _ result: Result<ResponseEnding, any Error>) {
        // The code, because a shortage of descriptors has another reason, and is cached as well.
        let hasFailed =
            if case .failure(let error as TransportError) = result {
                error.context.curlCode == Int32(CURLE_COULDNT_RESOLVE_HOST.rawValue)
            } else {
                false
            }
        // A connection that was open before tells nothing.
        let isFound = transfer.state.clock.connected != nil && transfer.handle.long(CURLINFO_NUM_CONNECTS) > 0
        guard hasFailed || isFound else { return }
        context.failedLookups.withLock { $0.note(transfer.exchange.request.url.authority, hasFailed: hasFailed) }
    }

    /// Notes that the connection of a transfer carries several exchanges at the same time, so that others may follow.
    private func noteMultiplexing(of transfer: Transfer) {
        guard transfer.isMultiplexed, !transfer.hasNotedMultiplexing else { return }
        transfer.hasNotedMultiplexing = true
        context.dispatcher.noteMultiplexing(
            transfer.origin, streams: transfer.state.connection.monitor?.maximumStreams ?? .max, on: index)
        mayAdmit = true
    }

    /// Marks a transfer as finished. The queue of deadlines would otherwise retain it until its next one.
    private func noteFinished(_ transfer: Transfer) {
        transfer.isFinished = true
        deadlines.remove(transfer)
        removeLimited(transfer)
    }

    private func finish(_ exchange: Exchange, _ result: Result<ResponseEnding, any Error>) {
        if case .channel(let channel) = exchange.upload { channel.stop() }
        exchange.webSocket?.end(result.map { _ in })
        exchange.end(result)
    }
}

extension CurlEngine {
    /// Hands on the end of a response whose request's body is still open. The reader of a streamed response receives it at
    /// once, and the rest of the request is sent until its scope ends. A response that is collected, or read by a task, waits
    /// for the rest of a body that has an end, as long as the server takes it.
    func endResponse(of transfer: Transfer) {
        if transfer.endsWithResponse { return endEarly(transfer) }
        guard !transfer.exchange.awaitsRequest, !transfer.state.receiving.isHandedOn else { return }
        guard transfer.isResponseWhole, case .success(let ending) = transfer.outcome(CURLE_OK) else {
            return endEarly(transfer)
        }
        transfer.state.receiving.handOn()
        transfer.exchange.endResponse(ending)
    }

    /// Ends a transfer whose response is complete while its request's body is not.
    func endEarly(_ transfer: Transfer) {
        guard !transfer.isResponseWhole, !transfer.state.receiving.isHeld else {
            return finish(transfer, transfer.outcome(CURLE_OK))
        }
        transfer.state.sending.end()
        transfer.state.clock.noteActivity(at: state.now)
        transfer.handle.resume(receiving: !transfer.state.receiving.isPaused, sending: true)
    }
}

// The ends of pauses, for which the reader of a response or the source of a request's body asks by a message.

extension CurlEngine {
    /// Resumes receiving after the reader has made room.
    func resumeReceiving(_ exchange: Exchange) {
        guard let transfer = active[ObjectIdentifier(exchange)], transfer.state.receiving.resume() else { return }
        resume(transfer)
    }

    /// Resumes sending after the body's source has bytes, or ends the transfer if the source failed.
    func resumeSending(_ exchange: Exchange) {
        guard let transfer = active[ObjectIdentifier(exchange)] else { return }
        if let error = transfer.uploadError {
            // The server may have refused the body by a response that is complete.
            finishCompleted()
            return finish(transfer, .failure(error))
        }
        if !transfer.isOverfull, transfer.state.sending.resume() { resume(transfer) }
    }

    /// Resumes a paused transfer. Bytes that libcurl buffered during the pause are delivered within the call, except with
    /// ``CurlDefects/latePauses``, and errors in processing them are reported only by its result. See curl_easy_pause(3).
    func resume(_ transfer: Transfer) {
        transfer.state.clock.noteActivity(at: state.now)
        if let socket = transfer.usedSocket, !transfer.state.receiving.isPaused || transfer.isMultiplexed {
            state.readAgain(socket)
        }
        transfer.state.receiving.mustTake = context.defects.contains(.fragilePauses)
        let heldMuch = transfer.holdsMuch
        var code = transfer.handle.resume(
            receiving: !transfer.state.receiving.isPaused, sending: !transfer.state.sending.isPaused && !heldMuch)
        if heldMuch, !transfer.holdsMuch, transfer.state.failure == nil {
            // The source may have bytes that libcurl was not told of.
            _ = transfer.state.sending.resume()
            code = transfer.handle.resume(receiving: !transfer.state.receiving.isPaused, sending: true)
        }
        transfer.state.receiving.mustTake = false
        if transfer.state.failure != nil { return finish(transfer, transfer.outcome(code)) }
        if context.defects.contains(.latePauses), transfer.exchange.sendsBody, !transfer.isMultiplexed {
            transfer.state.receiving.isRestComing = true
            resumed.append(transfer)
        }
        transfer.noteReadingEnded()
        finishForgotten(transfer)
    }
}
