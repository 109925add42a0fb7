// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite(.timeLimit(.minutes(5))) struct HandoffTests {
    @Test func `values arrive in order, then the end`() async throws {
        let handoff = Handoff<Int>()
        async let sent: Void = {
            for number in 1...1000 { try await handoff.send(number) }
            handoff.finish()
        }()
        var received: [Int] = []
        while let number = try await handoff.receive() { received.append(number) }
        try await sent
        #expect(received == Array(1...1000))
        #expect(try await handoff.receive() == nil)
    }

    @Test func `an error is received once`() async throws {
        let handoff = Handoff<Int>()
        handoff.finish(throwing: Planned(number: 1))
        await #expect(throws: Planned(number: 1)) { try await handoff.receive() }
        #expect(try await handoff.receive() == nil)
    }

    @Test func `an error ends a waiting receiver`() async throws {
        let handoff = Handoff<Int>()
        let receiver = Task { try await handoff.receive() }
        await Task.yield()
        handoff.finish(throwing: Planned())
        await #expect(throws: Planned.self) { try await receiver.value }
    }

    @Test func `a cancelled sender takes its value back`() async throws {
        let handoff = Handoff<Int>()
        let sender = Task { try await handoff.send(1) }
        await Task.yield()
        sender.cancel()
        await #expect(throws: CancellationError.self) { try await sender.value }
        async let other: Void = handoff.send(2)
        #expect(try await handoff.receive() == 2)
        try await other
    }

    @Test func `nothing can be sent after the end`() async throws {
        let handoff = Handoff<Int>()
        handoff.finish()
        await #expect(throws: CancellationError.self) { try await handoff.send(1) }
    }
}
