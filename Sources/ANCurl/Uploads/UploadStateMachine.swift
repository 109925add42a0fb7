// SPDX-License-Identifier: MIT

/// The protocol between the pump, which produces a request body, and the loop, which sends it.
///
/// The pump begins when the loop first looks for bytes: nothing is read from a source whose connection is not ready or
/// whose TLS handshake fails. It leaves a waiter while there is no room, and after its last byte, because the body may
/// be requested again. The loop reports when it has no bytes to send, and is notified when there are more. The bytes are
/// stored outside of this state machine.
package struct UploadStateMachine<Waiter> {
    private var waiter: Waiter?
    private var production = Production.running
    private var isLoopStarving = false
    /// Whether the loop has looked for bytes.
    private var isDemanded = false
    /// The number of times that the pump has started again.
    package private(set) var pass = 0
    private let capacity: Int

    /// Creates a state machine whose pump may be up to `capacity` bytes ahead of the loop.
    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// The pump's next action.
    package enum Order: Equatable {
        /// Produce the next chunk.
        case goOn
        /// Start again from the beginning, because the body is sent a second time.
        case restart
        /// Stop, because the exchange is over.
        case stop
    }

    /// The result of looking for bytes to send.
    package enum Supply: Equatable {
        /// There are bytes to send.
        case bytes
        /// There are no bytes yet; the loop is notified when there are.
        case starving
        /// The body is complete.
        case end
        /// The body's source has failed.
        case failed
    }

    private enum Production {
        /// The pump is producing bytes.
        case running
        /// All bytes have been produced.
        case finished
        /// The source has failed.
        case failed
        /// The loop has requested the body from its beginning, and the pump has not started again yet.
        case rewinding
        /// The exchange is over.
        case stopped
    }

    // MARK: The pump's side

    /// The pump's next action in the current state.
    package var order: Order {
        switch production {
        case .running, .finished, .failed: .goOn
        case .rewinding: .restart
        case .stopped: .stop
        }
    }

    /// The next action of a task that writes bytes of a pass, which may be over.
    package func order(in pass: Int) -> Order {
        order == .goOn && pass != self.pass ? .restart : order
    }

    /// Stores a waiter until the loop looks for bytes. It is returned at once if the loop has done so, or the exchange is
    /// over.
    package mutating func waitForDemand(_ newWaiter: Waiter) -> Waiter? {
        guard !isDemanded, production != .stopped else { return newWaiter }
        waiter = newWaiter
        return nil
    }

    /// Notes that the pump starts from the beginning of the body.
    package mutating func begin() {
        guard production == .rewinding else { return }
        production = .running
        pass += 1
    }

    /// Notes that a chunk was added. Returns whether the loop must be notified.
    package mutating func produce() -> Bool {
        wakeLoop()
    }

    /// Notes that the body is complete or that its source has failed. Returns whether the loop must be notified. It is
    /// always notified of a failure, because it may have sent all bytes of the declared length and not look for more.
    package mutating func finish(failed: Bool) -> Bool {
        guard production == .running else { return false }
        production = failed ? .failed : .finished
        return wakeLoop() || failed
    }

    /// Whether bytes are taken. After the end of the body, a task that the program's closure has left behind may still
    /// write some.
    package var takesBytes: Bool { production == .running }

    /// Stores a waiter. It is returned at once if there is room, or bytes are no longer taken; `mayGrow` says whether a
    /// buffer that is not empty may grow.
    package mutating func wait(
        _ newWaiter: Waiter, buffered: Int, mayGrow: @autoclosure () -> Bool = true
    ) -> Waiter? {
        guard takesBytes, !canGoOn(buffered, mayGrow) else { return newWaiter }
        waiter = newWaiter
        return nil
    }

    /// Stores a waiter for an order after the end of the body. It is returned at once if there is one. Otherwise returns
    /// that of a task that the program's closure has left behind.
    package mutating func waitForOrder(_ newWaiter: Waiter) -> Waiter? {
        guard order == .goOn else { return newWaiter }
        defer { waiter = newWaiter }
        return waiter
    }

    private func canGoOn(_ buffered: Int, _ mayGrow: () -> Bool) -> Bool {
        switch production {
        case .running: buffered < capacity && (buffered == 0 || mayGrow())
        case .finished, .failed: false
        case .rewinding, .stopped: true
        }
    }

    private mutating func wakeLoop() -> Bool {
        defer { isLoopStarving = false }
        return isLoopStarving
    }

    // MARK: The loop's side

    /// Lets the pump begin although the loop does not look for bytes. Returns the pump's waiter.
    package mutating func demand() -> Waiter? {
        isDemanded = true
        return consume(left: 0)
    }

    /// Returns what the loop finds when it looks for bytes, of which `buffered` are available.
    package mutating func look(buffered: Int) -> Supply {
        isDemanded = true
        if buffered > 0 { return .bytes }
        switch production {
        case .finished: return .end
        case .failed, .stopped: return .failed
        case .running, .rewinding:
            isLoopStarving = true
            return .starving
        }
    }

    /// Notes that the loop has looked for bytes or taken some, and `left` remain. Returns the pump's waiter if there is
    /// room for more.
    package mutating func consume(left: Int, mayGrow: @autoclosure () -> Bool = true) -> Waiter? {
        waiter != nil && canGoOn(left, mayGrow) ? takeWaiter() : nil
    }

    /// Requests the body from its beginning; buffered bytes are discarded. Returns the pump's waiter.
    package mutating func rewind() -> Waiter? {
        guard production != .stopped, isDemanded else { return nil }
        production = .rewinding
        return takeWaiter()
    }

    /// Notes that the exchange is over. Returns the pump's waiter.
    package mutating func stop() -> Waiter? {
        production = .stopped
        return takeWaiter()
    }

    private mutating func takeWaiter() -> Waiter? {
        defer { waiter = nil }
        return waiter
    }
}

extension UploadStateMachine: Sendable where Waiter: Sendable {}
