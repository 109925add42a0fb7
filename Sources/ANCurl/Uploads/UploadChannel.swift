// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
package import FoundationEssentials
package import HTTPTypes

/// A bounded channel for the bytes of a request body, from the task that produces them to the loop that sends them.
package final class UploadChannel: Sendable {
    /// The declared length in bytes; `nil` if it is unknown.
    package let length: Int64?
    /// Whether the body can be produced a second time.
    package let isReplayable: Bool
    private let memory: MemoryBudget?
    private let state: Lock<State>

    /// Creates a channel that buffers up to `capacity` bytes, as far as a budget permits it.
    package init(length: Int64?, isReplayable: Bool, capacity: Int = 512 << 10, memory: MemoryBudget? = nil) {
        self.memory = memory
        self.length = length
        self.isReplayable = isReplayable
        state = Lock(State(machine: UploadStateMachine(capacity: capacity)))
    }

    // MARK: The pump's side

    /// Waits until the loop looks for bytes for the first time, or the exchange is over.
    package func waitForDemand() async -> UploadStateMachine<Waiter>.Order {
        await Waiter.suspend { waiter in
            state.withLock { $0.machine.waitForDemand(waiter) }?.wake()
        }
        return state.withLock { $0.machine.order }
    }

    /// Notes that the pump starts producing the body from its beginning. Returns the number of this pass.
    package func begin() -> Int {
        state.withLock { state in
            state.machine.begin()
            return state.machine.pass
        }
    }

    /// Appends a chunk of a pass and waits until there is room for the next one. Calls `tellLoop` if the loop is waiting for
    /// bytes. With a budget, a large chunk is appended in parts. One chunk is written at a time.
    package func write(
        _ chunk: Data, in pass: Int, tellLoop: () -> Void
    ) async -> UploadStateMachine<Waiter>.Order {
        guard let size = memory?.chunk, chunk.count > size else { return await append(chunk, in: pass, tellLoop) }
        for start in stride(from: chunk.startIndex, to: chunk.endIndex, by: size) {
            // A copy, which does not retain the whole chunk.
            let order = await append(Data(chunk[start..<min(start + size, chunk.endIndex)]), in: pass, tellLoop)
            guard order == .goOn else { return order }
        }
        return .goOn
    }

    private func append(
        _ chunk: Data, in pass: Int, _ tellLoop: () -> Void
    ) async -> UploadStateMachine<Waiter>.Order {
        let (order, mustTell) = state.withLock { state in
            let order = state.machine.order(in: pass)
            guard order == .goOn, !chunk.isEmpty else { return (order, false) }
            guard state.machine.takesBytes else { return (.stop, false) }
            if let memory, state.share == nil { state.share = MemoryShare(of: memory) }
            state.append(chunk)
            return (.goOn, state.machine.produce())
        }
        if mustTell { tellLoop() }
        return order == .goOn ? await waitForRoom(in: pass) : order
    }

    /// Ends the body and waits until the exchange is over or the body must be produced again.
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
        await Waiter.suspend { waiter in
            state.withLock { $0.machine.waitForOrder(waiter) }?.wake()
        }
        return state.withLock { $0.machine.order }
    }

    private func waitForRoom(in pass: Int) async -> UploadStateMachine<Waiter>.Order {
        await Waiter.suspend { waiter in
            state.withLock { state in
                let (share, buffered) = (state.share, state.buffered)
                return state.machine.wait(waiter, buffered: buffered, mayGrow: share.mayGrow(buffered))
            }?.wake()
        }
        return state.withLock { $0.machine.order(in: pass) }
    }

    // MARK: The loop's side

    /// Moves bytes into the buffer. The count is positive if and only if the result is `.bytes`.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> (UploadStateMachine<Waiter>.Supply, count: Int) {
        let (supply, count, waiter) = state.withLock { state in
            let supply = state.machine.look(buffered: state.buffered)
            let count = supply == .bytes ? unsafe state.takeBytes(into: buffer) : 0
            // The response may take long. A share for the body, if it is sent again, begins with its first chunk.
            if supply == .end { state.share = nil }
            let (share, left) = (state.share, state.buffered)
            share?.hold(left)
            return (supply, count, state.machine.consume(left: left, mayGrow: share.mayGrow(left)))
        }
        waiter?.wake()
        return (supply, count)
    }

    /// Makes the pump begin, as the first ``read(into:)`` does, for a body of length 0: its source may fail or write
    /// bytes nevertheless.
    package func demand() {
        state.withLock { $0.machine.demand() }?.wake()
    }

    /// Discards the buffered bytes and makes the pump produce the body again.
    package func rewind() {
        state.withLock { state in
            state.dropBytes()
            state.problem = nil
            return state.machine.rewind()
        }?.wake()
    }

    /// Notifies the pump that the exchange is over.
    package func stop() {
        state.withLock { state in
            state.dropBytes()
            state.share = nil
            return state.machine.stop()
        }?.wake()
    }

    /// The failure of the body's source; `nil` if it has not failed.
    package var problem: TransportError.RequestBodyFailure? {
        state.withLock { $0.problem }
    }

    /// The trailer fields to send after the body.
    package var trailers: HTTPFields {
        state.withLock { $0.trailers }
    }

    private struct State {
        var machine: UploadStateMachine<Waiter>
        var chunks: [Data] = []
        /// The number of bytes taken from the first chunk.
        var offset = 0
        var buffered = 0
        /// The share of the buffer in the session's budget; `nil` without one, and before the first chunk.
        var share: MemoryShare?
        var trailers = HTTPFields()
        var problem: TransportError.RequestBodyFailure?

        /// Adds a chunk. Small ones are joined: each takes at least 16 bytes of memory, and removing the first of many
        /// chunks moves all others, for which the loop has no time.
        mutating func append(_ chunk: Data) {
            buffered += chunk.count
            if let last = chunks.indices.last, chunk.count <= Self.joinedSize - chunks[last].count {
                chunks[last].append(chunk)
            } else {
                chunks.append(chunk)
            }
        }

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
            share?.hold(0)
        }

        /// The maximum size of joined chunks: 32 of them fill the channel.
        private static let joinedSize = 16 << 10
    }
}

extension MemoryShare? {
    /// Returns whether a buffer may grow by a chunk.
    fileprivate func mayGrow(_ buffered: Int) -> Bool {
        map { $0.mayHold(buffered + $0.chunk) } ?? true
    }
}

/// A request's body, ready to send: its length is determined, and its bytes are in memory or produced through a
/// channel.
package enum Upload: Sendable {
    /// There is no body.
    case none
    /// The bytes are in memory.
    case bytes(Data)
    /// The bytes are written to the channel by a ``BodyPump``.
    case channel(UploadChannel)

    /// The length to declare, in bytes; `nil` if it is unknown.
    var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let data): Int64(data.count)
        case .channel(let channel): channel.length
        }
    }

    /// Whether the body can be sent a second time.
    var isReplayable: Bool {
        switch self {
        case .none, .bytes: true
        case .channel(let channel): channel.isReplayable
        }
    }
}
