// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials
package import HTTPTypes

/// A bounded pipe for the bytes of a request body, from the task that produces them to the loop that sends them.
package final class UploadChannel: Sendable {
    /// The declared length; nil when it is unknown.
    package let length: Int64?
    /// Whether the body can be produced a second time.
    package let isReplayable: Bool
    private let state: Lock<State>

    /// Creates a channel whose producer may be `capacity` bytes ahead.
    package init(length: Int64?, isReplayable: Bool, capacity: Int = 512 << 10) {
        self.length = length
        self.isReplayable = isReplayable
        state = Lock(State(machine: UploadStateMachine(capacity: capacity)))
    }

    // MARK: The pump's side

    /// Begins to produce from the start.
    package func begin() {
        state.withLock { $0.machine.begin() }
    }

    /// Adds a chunk and waits until there is room for the next one. `tellLoop` is called when the loop starved.
    package func write(_ chunk: Data, tellLoop: () -> Void) async -> UploadStateMachine<Waiter>.Order {
        let (order, mustTell) = state.withLock { state in
            guard state.machine.order == .goOn, !chunk.isEmpty else { return (state.machine.order, false) }
            state.chunks.append(chunk)
            state.buffered += chunk.count
            return (.goOn, state.machine.produce())
        }
        if mustTell { tellLoop() }
        return order == .goOn ? await waitForRoom() : order
    }

    /// Ends the body and waits for the end of the exchange, or for the order to begin again.
    package func finish(
        _ result: Result<HTTPFields, TransportError.RequestBodyFailure>, tellLoop: () -> Void
    ) async -> UploadStateMachine<Waiter>.Order {
        let mustTell = state.withLock { state in
            guard state.machine.order == .goOn else { return false }
            switch result {
            case .success(let trailers):
                state.trailers = trailers
                return state.machine.finish(failed: false)
            case .failure(let problem):
                state.problem = problem
                return state.machine.finish(failed: true)
            }
        }
        if mustTell { tellLoop() }
        return await waitForRoom()
    }

    private func waitForRoom() async -> UploadStateMachine<Waiter>.Order {
        await Waiter.suspend { waiter in
            state.withLock { $0.machine.wait(waiter, buffered: $0.buffered) }?.wake()
        }
        return state.withLock { $0.machine.order }
    }

    // MARK: The loop's side

    /// Moves bytes into the buffer; the count is above 0 exactly when there are some.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> (UploadStateMachine<Waiter>.Supply, count: Int) {
        let (supply, count, waiter) = state.withLock { state in
            let supply = state.machine.look(buffered: state.buffered)
            guard supply == .bytes else { return (supply, 0, Waiter?.none) }
            let count = unsafe state.takeBytes(into: buffer)
            return (supply, count, state.machine.consume(left: state.buffered))
        }
        waiter?.wake()
        return (supply, count)
    }

    /// Drops what is buffered and has the body produced again.
    package func rewind() {
        state.withLock { state in
            state.dropBytes()
            state.problem = nil
            return state.machine.rewind()
        }?.wake()
    }

    /// Tells the pump that the exchange is over.
    package func stop() {
        state.withLock { state in
            state.dropBytes()
            return state.machine.stop()
        }?.wake()
    }

    /// Why the source failed.
    package var problem: TransportError.RequestBodyFailure? {
        state.withLock { $0.problem }
    }

    /// The fields to send after the body.
    package var trailers: HTTPFields {
        state.withLock { $0.trailers }
    }

    private struct State {
        var machine: UploadStateMachine<Waiter>
        var chunks: [Data] = []
        /// How much of the first chunk was taken.
        var offset = 0
        var buffered = 0
        var trailers: HTTPFields = [:]
        var problem: TransportError.RequestBodyFailure?

        mutating func takeBytes(into buffer: UnsafeMutableRawBufferPointer) -> Int {
            var filled = 0
            while let chunk = chunks.first, filled < buffer.count {
                let count = min(chunk.count - offset, buffer.count - filled)
                let start = chunk.startIndex + offset
                unsafe chunk.copyBytes(
                    to: UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<(filled + count)]),
                    from: start..<(start + count))
                filled += count
                offset += count
                if offset == chunk.count {
                    chunks.removeFirst()
                    offset = 0
                }
            }
            buffered -= filled
            return filled
        }

        mutating func dropBytes() {
            chunks.removeAll()
            offset = 0
            buffered = 0
        }
    }
}
