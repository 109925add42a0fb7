// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Testing

/// The state between tasks and the loop; the tests take the part of the loop.
@Suite(.timeLimit(.minutes(5))) struct WebSocketChannelTests {
    private let channel = WebSocketChannel(WebSocketUpgrade(WebSocketOptions()) { _ in })

    /// Starts a task, which runs until it has to wait.
    private func waiting(_ body: sending @escaping () async throws -> Void) -> Task<Void, any Error> {
        Task.immediate { try await body() }
    }

    private func frames() throws -> [WebSocketFrame]? {
        if case .frames(let frames, _) = try channel.takeFrames() { frames } else { nil }
    }

    private func pass() throws -> Int {
        try channel.pass { WebSocketFrame(.text) }
    }

    private static let frame = WebSocketFrame(.binary, [1, 2, 3])

    // MARK: Sending

    @Test func `frames are numbered, and passed on in their order`() throws {
        #expect(try channel.pass { WebSocketFrame(.text, [1]) } == 1)
        #expect(try channel.pass { WebSocketFrame(.text, [2, 3]) } == 2)
        // A masked frame begins with 2 bytes and a mask of 4.
        let sizes = channel.takeCommands().map { if case .send(let bytes) = $0 { bytes.count } else { 0 } }
        #expect(sizes == [7, 8])
        #expect(channel.takeCommands().isEmpty)
    }

    @Test func `senders are resumed as their frames are accepted`() async throws {
        let channel = channel
        let order = Lock([Int]())
        let tasks = [3, 1, 2].map { number in
            waiting {
                try await channel.waitUntilAccepted(number)
                order.withLock { $0.append(number) }
            }
        }
        channel.noteAccepted(0)
        #expect(order.withLock { $0.isEmpty })
        channel.noteAccepted(2)
        try await tasks[1].value
        try await tasks[2].value
        #expect(order.withLock { $0.sorted() } == [1, 2])
        channel.noteAccepted(1)
        try await tasks[0].value
        // A frame that was accepted before needs no wait.
        try await channel.waitUntilAccepted(3)
    }

    @Test func `a cancelled sender leaves, and the others stay`() async throws {
        let channel = channel
        let resumed = Lock([Int]())
        let tasks = (1...3).map { number in
            waiting {
                defer { resumed.withLock { $0.append(number) } }
                try await channel.waitUntilAccepted(number)
            }
        }
        tasks[1].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        #expect(resumed.withLock { $0 } == [2])
        channel.noteAccepted(3)
        try await tasks[0].value
        try await tasks[2].value
    }

    @Test func `a frame that was accepted is sent, whatever follows`() async throws {
        let channel = channel
        let task = waiting {
            cancelThisTask()
            channel.noteAccepted(1)
            try await channel.waitUntilAccepted(1)
        }
        try await task.value
        channel.end(.failure(Planned()))
        try await channel.waitUntilAccepted(1)
        await #expect(throws: Planned.self) { try await channel.waitUntilAccepted(2) }
    }

    @Test func `nothing is sent after either side has closed the connection`() throws {
        #expect(throws: Never.self) { try pass() }
        let error = #expect(throws: TransportError.self) {
            _ = channel.add(.close(WebSocketClosure(code: 1000)))
            _ = try pass()
        }
        #expect(error?.reason == .webSocketClosed(nil))
        let other = WebSocketChannel(channel.upgrade)
        other.receive(WebSocketClosure(code: 1011, reason: "oops"))
        let second = #expect(throws: TransportError.self) { try other.pass { WebSocketFrame(.text) } }
        #expect(second?.reason == .webSocketClosed(WebSocketClosure(code: 1011, reason: "oops")))
        let ended = WebSocketChannel(channel.upgrade)
        ended.end(.success(()))
        #expect(throws: TransportError.self) { try ended.pass { WebSocketFrame(.text) } }
    }

    @Test func `a connection that closes while a frame is created sends nothing`() throws {
        let channel = channel
        #expect(throws: Planned.self) {
            try channel.pass {
                channel.end(.failure(Planned()))
                return WebSocketFrame(.text)
            }
        }
        #expect(channel.takeCommands().isEmpty)
    }

    // MARK: Receiving

    @Test func `frames are read together, and the reader is resumed when they are complete`() async throws {
        let channel = channel
        let task = waiting { await channel.waitForFrames() }
        channel.flush()
        #expect(!channel.add(Self.frame, capacity: 1000))
        #expect(!channel.add(WebSocketFrame(.text), capacity: 1000))
        // The reader has not been resumed yet.
        #expect(throws: TransportError.self) { try channel.takeFrames() }
        channel.flush()
        await #expect(throws: Never.self) { try await task.value }
        #expect(try frames() == [Self.frame, WebSocketFrame(.text)])
        #expect(try frames() == nil)
    }

    @Test func `frames that have arrived need no wait`() async throws {
        _ = channel.add(Self.frame, capacity: 1)
        await channel.waitForFrames()
        _ = try frames()
        channel.end(.success(()))
        await channel.waitForFrames()
        guard case .end = try channel.takeFrames() else { throw Planned() }
    }

    @Test func `there is one reader at a time`() async throws {
        let channel = channel
        let first = waiting { await channel.waitForFrames() }
        let error = #expect(throws: TransportError.self) { try channel.takeFrames() }
        guard case .internalInconsistency = error?.reason else { throw Planned() }
        // One that waits nevertheless does not replace the first one.
        await channel.waitForFrames()
        channel.end(.success(()))
        try await first.value
    }

    @Test func `a cancelled reader leaves, and another one can follow`() async throws {
        let channel = channel
        let first = waiting { await channel.waitForFrames() }
        first.cancel()
        try await first.value
        #expect(try frames() == nil)
        let cancelled = waiting {
            cancelThisTask()
            await channel.waitForFrames()
        }
        try await cancelled.value
        let second = waiting { await channel.waitForFrames() }
        _ = channel.add(Self.frame, capacity: 1000)
        channel.flush()
        try await second.value
        #expect(try frames() == [Self.frame])
    }

    @Test func `the connection is not read while frames of the buffer's size wait`() throws {
        let size = Self.frame.payload.count + MemoryLayout<WebSocketFrame>.stride
        #expect(!channel.add(Self.frame, capacity: 2 * size))
        #expect(!channel.isPaused)
        guard case .frames(_, mustResume: false) = try channel.takeFrames() else { throw Planned() }
        #expect(!channel.add(Self.frame, capacity: 2 * size))
        #expect(channel.add(Self.frame, capacity: 2 * size))
        #expect(channel.isPaused)
        guard case .frames(_, mustResume: true) = try channel.takeFrames() else { throw Planned() }
        #expect(!channel.isPaused)
        // When this side closes the connection, it is read for the answer.
        #expect(channel.add(Self.frame, capacity: 0))
        #expect(channel.add(.close(WebSocketClosure(code: 1000))))
        #expect(!channel.isPaused)
    }

    // MARK: The end

    @Test func `frames that arrived before an error are read before it, but not before a cancellation`() throws {
        _ = channel.add(Self.frame, capacity: 1000)
        channel.end(.failure(Planned()))
        #expect(try frames() == [Self.frame])
        #expect(throws: Planned.self) { try channel.takeFrames() }
        let cancelled = WebSocketChannel(channel.upgrade)
        _ = cancelled.add(Self.frame, capacity: 1000)
        cancelled.end(.failure(CancellationError()))
        #expect(throws: CancellationError.self) { try cancelled.takeFrames() }
    }

    @Test(arguments: [(1000, false), (1001, false), (nil, false), (1011, true)] as [(UInt16?, Bool)])
    func `the end is an error if the server closed the connection because of one`(code: UInt16?, isError: Bool) throws {
        channel.receive(WebSocketClosure(code: code))
        channel.end(.success(()))
        #expect(channel.closure?.code == code)
        switch Result(catching: { try channel.takeFrames() }) {
        case .success(.end): #expect(!isError)
        case .failure(let error as TransportError):
            #expect(isError && error.reason == .webSocketClosed(WebSocketClosure(code: code)))
        default: throw Planned()
        }
    }

    @Test func `a connection that this side has closed has no more frames and no error`() throws {
        _ = channel.add(Self.frame, capacity: 1000)
        #expect(channel.add(.close(WebSocketClosure(code: 1000))))
        guard case .notYet = try channel.takeFrames() else { throw Planned() }
        channel.receive(WebSocketClosure(code: 1011))
        channel.end(.success(()))
        guard case .end = try channel.takeFrames() else { throw Planned() }
    }

    @Test func `the end resumes all tasks, and is the first one`() async throws {
        let channel = channel
        let reader = waiting { await channel.waitForFrames() }
        let closers = (0..<2).map { _ in waiting { await channel.waitUntilEnded() } }
        let sender = waiting { try await channel.waitUntilAccepted(1) }
        channel.end(.failure(Planned(number: 1)))
        channel.end(.success(()))
        try await reader.value
        for closer in closers { try await closer.value }
        await #expect(throws: Planned(number: 1)) { try await sender.value }
        #expect(throws: Planned(number: 1)) { try channel.takeFrames() }
        await channel.waitUntilEnded()
        #expect(!channel.add(.fail(WebSocketViolation("late"))))
        #expect(channel.takeCommands().isEmpty)
    }
}

/// Cancels the calling task.
private func cancelThisTask() {
    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
}
