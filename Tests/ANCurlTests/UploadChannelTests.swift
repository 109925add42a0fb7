// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes
import Testing

@Suite struct UploadChannelTests {
    @Test func `bytes come out as they went in, in any pieces`() async {
        let channel = UploadChannel(length: 9, isReplayable: true)
        #expect(channel.length == 9)
        #expect(channel.isReplayable)
        for chunk in ["abc", "", "d", "efghi"] {
            #expect(await channel.write(Data(chunk.utf8), tellLoop: {}) == .goOn)
        }
        #expect(channel.take(2) == .bytes("ab"))
        #expect(channel.take(3) == .bytes("cde"))
        #expect(channel.take(100) == .bytes("fghi"))
        #expect(channel.take(100) == .starving)
    }

    @Test(.timeLimit(.minutes(1)))
    func `many small chunks are taken in time proportional to their number`() async {
        let count = 2 << 20
        let channel = UploadChannel(length: nil, isReplayable: false, capacity: count + 1)
        let byte = Data([7])
        for _ in 0..<count { _ = await channel.write(byte, tellLoop: {}) }
        var taken = 0
        while case .bytes(let bytes) = channel.takeBytes(64 << 10) { taken += bytes.count }
        #expect(taken == count)
    }

    @Test func `joined chunks come out as they went in`() async {
        let channel = UploadChannel(length: nil, isReplayable: false, capacity: 1 << 20)
        let bytes = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
        var rest = bytes
        var taken = Data()
        for size in (0..<50).flatMap({ [1, 15, 3000 + $0, 20_000] }) {
            #expect(await channel.write(rest.prefix(size), tellLoop: {}) == .goOn)
            rest = rest.dropFirst(size)
            if case .bytes(let bytes) = channel.takeBytes(size / 2 + 1) { taken += bytes }
        }
        while case .bytes(let bytes) = channel.takeBytes(10_000) { taken += bytes }
        #expect(rest.isEmpty)
        #expect(taken == bytes)
    }

    @Test func `the writer begins when the loop looks for bytes`() async {
        let channel = UploadChannel(length: nil, isReplayable: false)
        let isWriting = Lock(false)
        let writing = Task {
            let order = await channel.waitForDemand()
            isWriting.withLock { $0 = true }
            return order
        }
        for _ in 0..<100 { await Task.yield() }
        #expect(!isWriting.withLock { $0 })
        #expect(channel.take(1) == .starving)
        #expect(await writing.value == .goOn)
    }

    @Test func `a slice of data is read from its own start`() async {
        let channel = UploadChannel(length: nil, isReplayable: false)
        let data = Data("0123456789".utf8)
        #expect(await channel.write(data[3..<7], tellLoop: {}) == .goOn)
        #expect(channel.take(1) == .bytes("3"))
        #expect(channel.take(100) == .bytes("456"))
    }

    @Test func `the writer waits while there is too much`() async {
        let channel = UploadChannel(length: nil, isReplayable: false, capacity: 4)
        let writing = Task { await channel.write(Data("12345678".utf8), tellLoop: {}) }
        #expect(await channel.takeWhenThere(4) == .bytes("1234"))
        #expect(channel.take(1) == .bytes("5"))
        #expect(await writing.value == .goOn)
        #expect(channel.take(100) == .bytes("678"))
    }

    @Test func `a starving loop is told once for each time that it starved`() async {
        let channel = UploadChannel(length: nil, isReplayable: false)
        var calls = 0
        #expect(await channel.write(Data([1]), tellLoop: { calls += 1 }) == .goOn)
        #expect(calls == 0)
        _ = channel.take(10)
        #expect(channel.take(10) == .starving)
        #expect(await channel.write(Data([2]), tellLoop: { calls += 1 }) == .goOn)
        #expect(await channel.write(Data([3]), tellLoop: { calls += 1 }) == .goOn)
        #expect(calls == 1)
    }

    @Test func `after the last byte comes the end, with the trailers`() async {
        let channel = UploadChannel(length: nil, isReplayable: false)
        _ = await channel.write(Data("x".utf8), tellLoop: {})
        let finishing = Task { await channel.finish(.success([.eTag: "1"]), tellLoop: {}) }
        #expect(channel.take(10) == .bytes("x"))
        #expect(await channel.takeWhenThere(10) == .end)
        #expect(channel.trailers == [.eTag: "1"])
        channel.stop()
        #expect(await finishing.value == .stop)
    }

    @Test func `a failure is kept for the loop`() async {
        let channel = UploadChannel(length: 5, isReplayable: false)
        let finishing = Task { await channel.finish(.failure(.tooLong(declared: 5)), tellLoop: {}) }
        #expect(await channel.takeWhenThere(10) == .failed)
        guard case .tooLong(declared: 5) = channel.problem else {
            Issue.record("\(String(describing: channel.problem))")
            return
        }
        channel.stop()
        #expect(await finishing.value == .stop)
    }

    @Test func `rewinding drops what is buffered and has the pump begin again`() async {
        let channel = UploadChannel(length: nil, isReplayable: true, capacity: 4)
        let writing = Task { await channel.write(Data("12345678".utf8), tellLoop: {}) }
        #expect(await channel.takeWhenThere(2) == .bytes("12"))
        channel.rewind()
        #expect(await writing.value == .restart)
        #expect(channel.take(10) == .starving)
        #expect(await channel.write(Data("late".utf8), tellLoop: {}) == .restart, "A chunk of the first time.")
        #expect(channel.take(10) == .starving)
        let pass = channel.begin()
        #expect(await channel.write(Data("123".utf8), in: pass, tellLoop: {}) == .goOn)
        #expect(channel.take(10) == .bytes("123"))
    }

    /// The task goes on after the next pass has begun, because it is isolated to the same actor as the test. Its budget lets
    /// a large chunk go on when each part of it was taken.
    @Test @MainActor func `what is left of the write of one pass is not part of the next one`() async {
        let channel = UploadChannel(length: nil, isReplayable: true, memory: MemoryBudget(total: 0))
        let writing = Task.immediate { await channel.write(Data(count: 10_000), tellLoop: {}) }
        #expect(channel.takeBytes(1) == .bytes(Data(count: 1)))
        channel.rewind()
        let pass = channel.begin()
        #expect(await writing.value == .restart)
        let next = Task.immediate { await channel.write(Data("new".utf8), in: pass, tellLoop: {}) }
        #expect(channel.take(10_000) == .bytes("new"))
        #expect(await next.value == .goOn)
    }

    @Test func `stopping wakes the pump, which then writes nothing`() async {
        let channel = UploadChannel(length: nil, isReplayable: true, capacity: 1)
        let writing = Task { await channel.write(Data("12".utf8), tellLoop: {}) }
        #expect(await channel.takeWhenThere(1) == .bytes("1"))
        channel.stop()
        #expect(await writing.value == .stop)
        #expect(await channel.write(Data("3".utf8), tellLoop: {}) == .stop)
        #expect(channel.take(10) == .failed)
    }

    @Test func `a megabyte crosses from one thread to another`() async {
        let channel = UploadChannel(length: nil, isReplayable: false, capacity: 1000)
        let pump = Task {
            for index in 0..<1000 {
                _ = await channel.write(Data(repeating: UInt8(truncatingIfNeeded: index), count: 1049), tellLoop: {})
            }
            return await channel.finish(.success([:]), tellLoop: {})
        }
        var count = 0
        var isInOrder = true
        reading: while true {
            switch channel.takeBytes(777) {
            case .bytes(let bytes):
                for byte in bytes {
                    isInOrder = isInOrder && byte == UInt8(truncatingIfNeeded: count / 1049)
                    count += 1
                }
            case .starving: await Task.yield()
            case .end, .failed: break reading
            }
        }
        #expect(count == 1_049_000)
        #expect(isInOrder)
        channel.stop()
        #expect(await pump.value == .stop)
    }
}

/// The result of a read.
enum Taken<Bytes: Equatable>: Equatable {
    case bytes(Bytes)
    case starving
    case end
    case failed
}

extension UploadChannel {
    /// Writes a chunk of the first pass.
    func write(_ chunk: Data, tellLoop: () -> Void) async -> UploadStateMachine<Waiter>.Order {
        await write(chunk, in: 0, tellLoop: tellLoop)
    }

    /// Reads at most `count` bytes, as the loop does.
    func takeBytes(_ count: Int) -> Taken<Data> {
        var data = Data(count: count)
        let (supply, read) = unsafe data.withUnsafeMutableBytes { buffer in unsafe self.read(into: buffer) }
        return switch supply {
        case .bytes: .bytes(data.prefix(read))
        case .starving: .starving
        case .end: .end
        case .failed: .failed
        }
    }

    /// Reads at most `count` bytes of text.
    func take(_ count: Int) -> Taken<String> {
        switch takeBytes(count) {
        case .bytes(let data): .bytes(String(decoding: data, as: UTF8.self))
        case .starving: .starving
        case .end: .end
        case .failed: .failed
        }
    }

    /// Reads as soon as there is something to read.
    func takeWhenThere(_ count: Int) async -> Taken<String> {
        while true {
            let taken = take(count)
            if taken != .starving { return taken }
            await Task.yield()
        }
    }
}
