// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import Glibc
import Testing

/// The state between tasks and the loop; the tests take the part of the loop.
@Suite(.timeLimit(.minutes(5))) struct WebSocketChannelTests {
    private let channel = WebSocketChannel(WebSocketOptions())

    /// Starts a task, which runs until it has to wait.
    private func waiting(_ body: sending @escaping () async throws -> Void) -> Task<Void, any Error> {
        Task.immediate { try await body() }
    }

    private func frames() throws -> [WebSocketFrame]? {
        if case .frames(let frames, _) = try channel.takeFrames() { frames } else { nil }
    }

    private func send() throws -> WebSocketChannel.Sending {
        try channel.send { WebSocketFrame(.text) }
    }

    /// Accepts up to `limit` bytes of those that wait to be sent, and returns them.
    private func accept(_ limit: Int = .max) -> [UInt8] {
        var accepted: [UInt8] = []
        channel.withOutput { output in
            while output.sendOnce({ bytes in
                let count = min(bytes.count, limit - accepted.count)
                accepted += bytes.prefix(count)
                return count
            }) > 0 {}
        }
        return accepted
    }

    private static let frame = WebSocketFrame(.binary, [1, 2, 3])

    // MARK: Sending

    @Test func `frames are sent by the loop in their order`() throws {
        #expect(try channel.send { WebSocketFrame(.text, [1]) } == .init(mustServe: true))
        // The loop has not served the connection yet.
        #expect(try channel.send { WebSocketFrame(.text, [2, 3]) } == .init(mustServe: false))
        #expect(channel.takeCommands().isEmpty)
        // A masked frame begins with 2 bytes and a mask of 4.
        let bytes = accept()
        #expect(bytes.count == 7 + 8)
        #expect(bytes[1] == 0x81 && bytes[8] == 0x82)
        #expect(try send().mustServe)
    }

    @Test func `a failure to send ends the waits of senders, before and after it`() async throws {
        struct Lost: Error {}
        let sending = try channel.send { WebSocketFrame(.binary, [UInt8](repeating: 0, count: 100_000)) }
        let count = try #require(sending.awaitedCount)
        let early = waiting { [channel] in try await channel.wait(forAccepted: count) }
        channel.failOutput(Lost())
        await #expect(throws: Lost.self) { try await early.value }
        await #expect(throws: Lost.self) { try await channel.wait(forAccepted: count) }
        #expect(throws: Lost.self) { try send() }
        channel.end(.success(()))
        await #expect(throws: Lost.self) { try await channel.waitUntilEnded() }
    }

    @Test func `a failure to send a pong loses no message`() async throws {
        channel.withOutput { $0.appendPong([1, 2, 3]) }
        channel.failOutput(CancellationError())
        channel.end(.success(()))
        try await channel.waitUntilEnded()
    }

    @Test func `a frame that follows the server's frames is sent at once, others by the loop`() throws {
        let pair = try SocketPair()
        channel.open(socket: pair.socket.number)
        #expect(try send() == .init())
        #expect(pair.received() == 6)
        // The server has not answered.
        #expect(try send().mustServe)
        #expect(try send() == .init())
        _ = accept()
        for _ in 0..<3 { _ = channel.add(Self.frame, capacity: 1000) }
        #expect(try send() == .init())
        #expect(pair.received() == 6)
        _ = channel.add(Self.frame, capacity: 1000)
        // The loop's frames come first.
        channel.withOutput { $0.appendPong([1]) }
        _ = channel.takeCommands()
        #expect(try send().mustServe)
        #expect(accept().count == 7)
        channel.disconnect()
        _ = channel.add(Self.frame, capacity: 1000)
        _ = channel.takeCommands()
        #expect(try send().mustServe)
    }

    @Test func `frames that the server does not answer are forgotten`() throws {
        let pair = try SocketPair()
        channel.open(socket: pair.socket.number)
        for _ in 0..<9 { _ = try send() }
        _ = accept()
        // One frame answers one, and half of the others are forgotten: 4 are left, then with the next ones 2, 1 and 0.
        for isDirect in [false, false, false, true] {
            _ = channel.add(Self.frame, capacity: 1000)
            channel.flush()
            _ = channel.takeCommands()
            #expect(try send().mustServe == !isDirect)
            _ = accept()
        }
        #expect(pair.received() > 0)
    }

    @Test func `a frame that the socket accepts in part is completed by the loop`() throws {
        let pair = try SocketPair()
        channel.open(socket: pair.socket.number)
        let payload = [UInt8](repeating: 7, count: 4 << 20)
        let sending = try channel.send { WebSocketFrame(.binary, payload) }
        #expect(sending == .init(mustServe: true, awaitedCount: payload.count + 14 - 65_536))
        let sent = pair.received()
        #expect(sent > 0)
        #expect(accept().count == payload.count + 14 - sent)
    }

    @Test func `senders wait while many bytes were not accepted`() async throws {
        let channel = channel
        // A frame has a header of 8 bytes, and 65,536 bytes may be left.
        let frame = WebSocketFrame(.binary, [UInt8](repeating: 7, count: 39_992))
        let counts = try (0..<4).map { _ in try channel.send { frame }.awaitedCount }
        #expect(counts == [nil, 14_464, 54_464, 94_464])
        let resumed = Lock([Int]())
        let tasks = counts.compactMap(\.self).map { count in
            waiting {
                defer { resumed.withLock { $0.append(count) } }
                try await channel.wait(forAccepted: count)
            }
        }
        tasks[1].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[1].value }
        _ = accept(14_463)
        #expect(resumed.withLock { $0 } == [54_464])
        _ = accept(1)
        try await tasks[0].value
        #expect(resumed.withLock { $0 } == [54_464, 14_464])
        _ = accept()
        try await tasks[2].value
        // What was accepted need not be waited for.
        try await channel.wait(forAccepted: 94_464)
        // The next frame finds an empty output.
        #expect(try channel.send { frame }.awaitedCount == nil)
    }

    @Test func `a frame that was accepted is sent, whatever follows`() async throws {
        let channel = channel
        let frame = WebSocketFrame(.binary, [UInt8](repeating: 7, count: 100_000))
        let count = try #require(try channel.send { frame }.awaitedCount)
        let task = waiting {
            cancelThisTask()
            _ = self.accept(count)
            try await channel.wait(forAccepted: count)
        }
        try await task.value
        channel.end(.failure(Planned()))
        try await channel.wait(forAccepted: count)
        await #expect(throws: Planned.self) { try await channel.wait(forAccepted: count + 1) }
    }

    @Test func `a wait for the output ends with the connection, and with a cancellation`() async throws {
        let channel = channel
        let cancelled = waiting {
            cancelThisTask()
            try await channel.wait(forAccepted: 1)
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        _ = try send()
        let task = waiting { try await channel.wait(forAccepted: 7) }
        channel.end(.failure(Planned()))
        await #expect(throws: Planned.self) { try await task.value }
        #expect(accept().isEmpty)
    }

    @Test func `nothing is sent after either side has closed the connection`() throws {
        #expect(throws: Never.self) { try send() }
        let error = #expect(throws: TransportError.self) {
            _ = channel.add(.close(WebSocketClosure(code: 1000)))
            _ = try send()
        }
        #expect(error?.reason == .webSocketClosed(nil))
        let other = WebSocketChannel(channel.options)
        other.receive(WebSocketClosure(code: 1011, reason: "oops"))
        let second = #expect(throws: TransportError.self) { try other.send { WebSocketFrame(.text) } }
        #expect(second?.reason == .webSocketClosed(WebSocketClosure(code: 1011, reason: "oops")))
        let ended = WebSocketChannel(channel.options)
        ended.end(.success(()))
        #expect(throws: TransportError.self) { try ended.send { WebSocketFrame(.text) } }
    }

    @Test func `a connection that closes while a frame is created sends nothing`() throws {
        let channel = channel
        #expect(throws: Planned.self) {
            try channel.send {
                channel.end(.failure(Planned()))
                return WebSocketFrame(.text)
            }
        }
        #expect(accept().isEmpty)
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

    @Test(arguments: [false, true])
    func `the share in the session's budget ends with the connection and its last frame`(isRead: Bool) throws {
        let memory = MemoryBudget(total: 1 << 20)
        let channel = WebSocketChannel(WebSocketOptions(), memory: memory)
        channel.open(socket: nil)
        _ = channel.add(Self.frame, capacity: 100)
        if isRead { _ = try channel.takeFrames() }
        #expect(memory.snapshot.holders == 1)
        channel.end(.success(()))
        #expect(memory.snapshot.holders == (isRead ? 0 : 1))
        if !isRead { _ = try channel.takeFrames() }
        #expect(memory.snapshot.holders == 0 && memory.snapshot.lent == 0)
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
        let cancelled = WebSocketChannel(channel.options)
        _ = cancelled.add(Self.frame, capacity: 1000)
        cancelled.end(.failure(CancellationError()))
        #expect(throws: CancellationError.self) { try cancelled.takeFrames() }
    }

    @Test func `a reader waits for the end while this side closes, and frames are discarded`() async throws {
        #expect(channel.add(Self.frame, capacity: 1))
        #expect(channel.add(.close(WebSocketClosure(code: 1000))))
        #expect(!channel.isPaused)
        #expect(!channel.add(Self.frame, capacity: 1))
        let reader = waiting { await channel.waitForFrames() }
        // It is registered, so that another one is refused.
        #expect(throws: TransportError.self) { try channel.takeFrames() }
        channel.end(.success(()))
        try await reader.value
        guard case .end = try channel.takeFrames() else {
            Issue.record("frames")
            return
        }
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

    @Test func `a connection that is lost while this side closes it has no error for the reader`() throws {
        #expect(channel.add(.close(WebSocketClosure(code: 1000))))
        channel.end(.failure(Planned()))
        guard case .end = try channel.takeFrames() else { throw Planned() }
    }

    @Test func `closing does not fail because of frames of the protocol`() async throws {
        _ = try send()
        _ = accept()
        channel.withOutput { output in
            output.append([0x88, 0x80])
            output.appendPong([0x8A, 0x80])
        }
        channel.end(.failure(Planned()))
        try await channel.waitUntilEnded()
    }

    @Test func `closing fails if the server closed the connection before all messages were sent`() async throws {
        _ = try send()
        channel.receive(WebSocketClosure(code: 1000))
        channel.end(.success(()))
        let error = await #expect(throws: TransportError.self) { try await channel.waitUntilEnded() }
        #expect(error?.reason == .webSocketClosed(WebSocketClosure(code: 1000)))
        guard case .end = try channel.takeFrames() else { throw Planned() }
    }

    @Test(arguments: [true, false])
    func `closing fails if the connection was lost before all messages were sent`(isSent: Bool) async throws {
        _ = try send()
        if isSent { _ = accept() }
        channel.end(.failure(Planned()))
        if isSent {
            try await channel.waitUntilEnded()
        } else {
            await #expect(throws: Planned.self) { try await channel.waitUntilEnded() }
        }
    }

    @Test func `the end resumes all tasks, and is the first one`() async throws {
        let channel = channel
        let reader = waiting { await channel.waitForFrames() }
        let closers = (0..<2).map { _ in waiting { try await channel.waitUntilEnded() } }
        let sender = waiting { try await channel.wait(forAccepted: 1) }
        channel.end(.failure(Planned(number: 1)))
        channel.end(.success(()))
        try await reader.value
        for closer in closers { try await closer.value }
        await #expect(throws: Planned(number: 1)) { try await sender.value }
        #expect(throws: Planned(number: 1)) { try channel.takeFrames() }
        try await channel.waitUntilEnded()
        #expect(!channel.add(.fail(WebSocketViolation("late"))))
        #expect(channel.takeCommands().isEmpty)
    }
}

/// Cancels the calling task.
private func cancelThisTask() {
    unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
}

/// Two connected sockets.
private struct SocketPair: ~Copyable {
    let socket: FileDescriptor
    private let peer: FileDescriptor

    init() throws {
        var numbers: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &numbers) == 0 else { throw Planned() }
        socket = FileDescriptor(takingOwnershipOf: numbers[0])
        peer = FileDescriptor(takingOwnershipOf: numbers[1])
    }

    /// Receives the bytes that were sent on the socket, and returns their number.
    func received() -> Int {
        var total = 0
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = unsafe recv(peer.number, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return total }
            total += count
        }
    }
}
