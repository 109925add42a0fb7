// SPDX-License-Identifier: MIT

/// The agreement between the pump, which produces a request body, and the loop, which sends it.
///
/// The pump leaves a waiter while there is no room, and after its last byte, because the body may be wanted again. The
/// loop reports that it starves, and is told when there is something to send. The bytes lie beside this machine.
package struct UploadStateMachine<Waiter> {
    private var waiter: Waiter?
    private var production = Production.running
    private var isLoopStarving = false
    private let capacity: Int

    /// Creates a machine whose pump may be so many bytes ahead of the loop.
    package init(capacity: Int) {
        self.capacity = capacity
    }

    /// What the pump has to do.
    package enum Order: Equatable {
        /// Produce the next chunk.
        case goOn
        /// Begin again from the start: the body is sent a second time.
        case restart
        /// End: the exchange is over.
        case stop
    }

    /// What the loop finds.
    package enum Supply: Equatable {
        /// There are bytes.
        case bytes
        /// There are none yet; the loop is told when there are.
        case starving
        /// The body is complete.
        case end
        /// The body's source failed.
        case failed
    }

    private enum Production {
        /// The pump has more.
        case running
        /// All bytes are produced.
        case finished
        /// The source failed.
        case failed
        /// The loop wants the body from its start, and the pump has not heard so yet.
        case rewinding
        /// The exchange is over.
        case stopped
    }

    // MARK: The pump's side

    /// What the pump has to do now.
    package var order: Order {
        switch production {
        case .running, .finished, .failed: .goOn
        case .rewinding: .restart
        case .stopped: .stop
        }
    }

    /// The pump begins from the start.
    package mutating func begin() {
        if production == .rewinding { production = .running }
    }

    /// A chunk was added; true when the loop must be told.
    package mutating func produce() -> Bool {
        wakeLoop()
    }

    /// The body is complete, or its source failed; true when the loop must be told. Of a failure it is told at once, as it
    /// may have sent all that it was promised, and look no more.
    package mutating func finish(failed: Bool) -> Bool {
        guard production == .running else { return false }
        production = failed ? .failed : .finished
        return wakeLoop() || failed
    }

    /// Leaves a waiter; it comes back at once when there is room, or an order.
    package mutating func wait(_ newWaiter: Waiter, buffered: Int) -> Waiter? {
        waiter = newWaiter
        return canGoOn(buffered: buffered) ? takeWaiter() : nil
    }

    private func canGoOn(buffered: Int) -> Bool {
        switch production {
        case .running: buffered < capacity
        case .finished, .failed: false
        case .rewinding, .stopped: true
        }
    }

    private mutating func wakeLoop() -> Bool {
        defer { isLoopStarving = false }
        return isLoopStarving
    }

    // MARK: The loop's side

    /// The loop looks for bytes, of which so many are there.
    package mutating func look(buffered: Int) -> Supply {
        if buffered > 0 { return .bytes }
        switch production {
        case .finished: return .end
        case .failed, .stopped: return .failed
        case .running, .rewinding:
            isLoopStarving = true
            return .starving
        }
    }

    /// The loop took bytes and left so many: the pump's waiter, if there is room for more.
    package mutating func consume(left: Int) -> Waiter? {
        waiter != nil && canGoOn(buffered: left) ? takeWaiter() : nil
    }

    /// The loop wants the body from its start; what was buffered is dropped. Returns the pump's waiter.
    package mutating func rewind() -> Waiter? {
        guard production != .stopped else { return nil }
        production = .rewinding
        return takeWaiter()
    }

    /// The exchange is over. Returns the pump's waiter.
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
