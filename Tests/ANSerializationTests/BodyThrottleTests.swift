// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import Testing

@Suite struct BodyThrottleTests {
    @Test func `packets are separated by pauses each time the body is sent`() async throws {
        let clock = JumpingClock()
        let body = try RequestBody.string("abcdefg").throttled(.packets(of: 3, delay: .milliseconds(200)), clock: clock)
        #expect(body.length == 7)
        #expect(body.isReplayable)
        for _ in 0..<2 {
            clock.reset()
            #expect(try await texts(of: body) == ["abc", "def", "g"])
            #expect(clock.sleeps == [.milliseconds(200), .milliseconds(200)])
        }
    }

    @Test func `a pause is no longer than a clock can sleep`() async throws {
        let clock = JumpingClock()
        let body = try RequestBody.string("ab").throttled(.packets(of: 1, delay: .seconds(Int64.max)), clock: clock)
        #expect(try await texts(of: body) == ["a", "b"])
        #expect(clock.sleeps == [.seconds(36_500 * 86_400)])
    }

    @Test func `packets do not span the chunks of a sequence`() async throws {
        let clock = JumpingClock()
        let body = try RequestBody.stream(Chunks(["abcd", "", "e"]), length: 5).throttled(
            .packets(of: 3, delay: .seconds(1)), clock: clock)
        #expect(body.length == 5)
        #expect(!body.isReplayable)
        #expect(try await texts(of: body) == ["abc", "d", "e"])
        #expect(clock.sleeps == [.seconds(1), .seconds(1)])
    }

    @Test func `a body is held before its first chunk and after each`() async throws {
        for chunksBefore in 0...3 {
            let (passes, written) = (Lock(0), Lock([Data]()))
            var body = RequestBody.stream(Chunks(["ab", "cd", "ef"]))
            body.gate = {
                let number = passes.withLock { passes in
                    defer { passes += 1 }
                    return passes
                }
                if number == chunksBefore { throw Chunks.Failing() }
            }
            await #expect(throws: Chunks.Failing.self) {
                try await body.write(to: RequestBodyWriter { chunk in written.withLock { $0.append(chunk) } })
            }
            #expect(written.withLock { $0 } == ["ab", "cd", "ef"].prefix(chunksBefore).map { Data($0.utf8) })
        }
    }

    @Test func `time during which nothing was read is not made up for`() async throws {
        let clock = JumpingClock()
        let body = try RequestBody.bytes(Data(count: 60)).throttled(
            .packets(of: 20, delay: .milliseconds(50)), clock: clock)
        let sleeps = Lock<[[Duration]]>([])
        try await body.write(
            to: RequestBodyWriter { _ in
                sleeps.withLock { $0.append(clock.sleeps) }
                if sleeps.withLock(\.count) == 1 { clock.advance(by: .seconds(10)) }
            })
        #expect(sleeps.withLock { $0 } == [[], [], [.milliseconds(50)]])
    }

    @Test func `a packet has at least one byte`() {
        #expect(BodyThrottle.packets(of: -5).packetSize == 1)
        #expect(BodyThrottle.packets() == .packets(of: 16_384, delay: .milliseconds(200)))
    }

    @Test func `a file is read in packets and its length is known`() async throws {
        try await withFile(named: "f", Data("abcde".utf8)) { path in
            let body = try RequestBody.file(path).throttled(.packets(of: 2, delay: .zero), clock: JumpingClock())
            #expect(body.length == 5)
            #expect(try await texts(of: body) == ["ab", "cd", "e"])
        }
        await expectFailure(
            .file(path: "/nonexistent/f", reason: "open: No such file or directory (errno 2)")
        ) {
            _ = try RequestBody.file("/nonexistent/f").throttled(.packets())
        }
    }

    @Test func `a form is throttled as a whole`() async throws {
        var form = try MultipartFormData(boundary: "B")
        form.append("1", name: "a")
        form.throttle = .packets(of: 10, delay: .zero)
        let body = try form.makeBody().body
        let chunks = try await chunks(of: body)
        #expect(chunks.dropLast().allSatisfy { $0.count == 10 })
        #expect(body.length == Int64(chunks.reduce(0) { $0 + $1.count }))
    }

    private func texts(of body: RequestBody) async throws -> [String] {
        try await chunks(of: body).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// A clock that sleeps in no time and records the durations.
private final class JumpingClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private let state = Lock((now: Instant(offset: .zero), sleeps: [Duration]()))

    var now: Instant { state.withLock { $0.now } }
    var minimumResolution: Duration { .nanoseconds(1) }
    var sleeps: [Duration] { state.withLock { $0.sleeps } }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        state.withLock { state in
            state.sleeps.append(state.now.duration(to: deadline))
            state.now = deadline
        }
    }

    func advance(by duration: Duration) { state.withLock { $0.now = $0.now.advanced(by: duration) } }
    func reset() { state.withLock { $0.sleeps = [] } }
}
