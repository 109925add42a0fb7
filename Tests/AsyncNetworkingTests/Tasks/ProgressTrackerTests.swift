// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

/// The progress of a task's exchanges, without performing any.
@Suite struct ProgressTrackerTests {
    private var tracker = ProgressTracker()
    private var lastExchange = 0

    private mutating func beginExchange(at seconds: Int = 0) {
        lastExchange += 1
        tracker.beginExchange(lastExchange, at: .seconds(seconds))
    }

    private mutating func receive(_ bytes: Int64, of total: Int64? = nil, at seconds: Int = 0) -> TransferProgress? {
        let progress = TransferProgress(completedBytes: bytes, totalBytes: total)
        return tracker.receive(progress, by: lastExchange, at: .seconds(seconds))
    }

    @Test mutating func `received bytes are held back until the exchange is accepted`() {
        beginExchange()
        #expect(receive(1) == nil)
        #expect(receive(2) == nil)
        #expect(tracker.accept(at: .zero)?.completedBytes == 2)
        #expect(receive(3)?.completedBytes == 3)
    }

    @Test mutating func `progress of an earlier exchange does not count for the accepted one`() {
        beginExchange()
        #expect(receive(100) == nil)
        beginExchange()
        #expect(tracker.accept(at: .zero) == nil)
        #expect(receive(1)?.completedBytes == 1)
    }

    @Test mutating func `an exchange after an accepted one must be accepted again`() {
        beginExchange()
        _ = tracker.accept(at: .zero)
        _ = receive(1)
        beginExchange()
        #expect(receive(7) == nil)
    }

    @Test mutating func `a resumed download counts from its offset`() {
        beginExchange()
        let start = tracker.accept(offset: 40, total: 100, at: .zero)
        #expect(start == TransferProgress(completedBytes: 40, totalBytes: 100))
        #expect(receive(10, of: 60)?.counts == TransferProgress(completedBytes: 50, totalBytes: 100))
        beginExchange()
        _ = tracker.accept(offset: 40, at: .zero)
        // The exchange may be followed by another one.
        #expect(receive(10, of: 60)?.counts == TransferProgress(completedBytes: 50, totalBytes: nil))
        #expect(receive(11)?.counts == TransferProgress(completedBytes: 51, totalBytes: nil))
    }

    @Test mutating func `implausible sizes do not trap`() {
        beginExchange()
        _ = tracker.accept(offset: .max, total: .max, at: .zero)
        #expect(receive(.max, of: .max)?.counts == TransferProgress(completedBytes: .max, totalBytes: .max))
    }

    @Test mutating func `a response without an exchange has one value, at its end`() {
        _ = tracker.accept(at: .zero)
        #expect(tracker.complete(5) == TransferProgress(completedBytes: 5, totalBytes: 5))
        beginExchange()
        _ = tracker.accept(at: .zero)
        _ = receive(5)
        #expect(tracker.complete(5) == nil)
    }

    @Test mutating func `the rate is measured from the start of the accepted exchange`() {
        beginExchange(at: 1)
        #expect(tracker.accept(offset: 1000, at: .seconds(2)) != nil)
        #expect(receive(300, at: 3)?.bytesPerSecond == 300)
        let sent = tracker.send(
            TransferProgress(completedBytes: 50, totalBytes: 100), by: lastExchange, at: .seconds(6))
        #expect(sent?.bytesPerSecond == 10)
        #expect(sent?.timeLeft == .seconds(5))
    }

    @Test mutating func `the bytes of an exchange that is not part of the response do not count`() {
        beginExchange()
        #expect(receive(10, at: 1) == nil)
        let accepted = tracker.accept(offset: 100, total: 100, countsExchange: false, at: .seconds(1))
        #expect(accepted == TransferProgress(completedBytes: 100, totalBytes: 100))
        #expect(receive(20, at: 2) == nil)
        #expect(tracker.complete(100) == TransferProgress(completedBytes: 100, totalBytes: 100))
    }

    @Test mutating func `suspended time does not count`() {
        beginExchange()
        _ = tracker.accept(at: .zero)
        #expect(receive(100, at: 1)?.bytesPerSecond == 100)
        tracker.interrupt()
        #expect(receive(120, at: 1000)?.bytesPerSecond == 100)
        // With a weight of 1 / (1 + 1.5): 100 + (200 - 100) * 0.4.
        #expect(receive(320, at: 1001)?.bytesPerSecond == 140)
    }
}

/// The progress of exchanges of a task that overlap.
@Suite struct OverlappingExchangesTests {
    /// A step of an exchange.
    enum Step: Sendable {
        case begin(Int)
        case send(Int, by: Int)
        case head(Int)
        case end(Int)
    }

    @Test(
        arguments: [
            (
                "the first one wins, and ends before the second one, which is cancelled",
                [.begin(1), .send(9, by: 1), .begin(2), .send(2, by: 2), .head(1), .end(1), .send(3, by: 2), .end(2)],
                [9, 2, 3, 9]
            ),
            (
                "the first one wins, and goes on",
                [
                    .begin(1), .send(4, by: 1), .begin(2), .send(2, by: 2), .send(6, by: 1), .head(1), .end(2),
                    .send(9, by: 1),
                ],
                [4, 2, 6, 9]
            ),
            (
                "the second one wins, and the first one ends before or after it",
                [.begin(1), .send(4, by: 1), .begin(2), .send(9, by: 2), .head(2), .send(5, by: 1), .end(1), .end(2)],
                [4, 9]
            ),
            (
                "both are answered",
                [.begin(1), .send(9, by: 1), .begin(2), .send(9, by: 2), .head(1), .head(2), .end(2), .end(1)],
                [9, 9, 9]
            ),
            (
                "the second one fails, and then the first one",
                [.begin(1), .send(4, by: 1), .begin(2), .end(2), .send(5, by: 1), .end(1)], [4, 4, 5]
            ),
            (
                "the first one fails, and then the second one",
                [.begin(1), .send(4, by: 1), .begin(2), .send(1, by: 2), .end(1), .end(2)], [4, 1]
            ),
            (
                "one after the other",
                [
                    .begin(1), .send(9, by: 1), .head(1), .end(1), .begin(2), .send(1, by: 2), .end(2), .begin(3),
                    .send(0, by: 3),
                ],
                [9, 1, 0]
            ),
            (
                "of three, the one that began last of those that go on",
                [
                    .begin(1), .send(1, by: 1), .begin(2), .send(2, by: 2), .begin(3), .send(3, by: 3), .end(3),
                    .end(2),
                    .send(4, by: 1), .send(5, by: 3),
                ], [1, 2, 3, 2, 1, 4]
            ),
            ("one that is unknown", [.send(1, by: 1), .head(1), .end(1)], []),
        ] as [(String, [Step], [Int64])])
    func `the progress of sending is that of one exchange`(situation: String, steps: [Step], reported: [Int64]) {
        var tracker = ProgressTracker()
        var values: [Int64?] = []
        for step in steps {
            switch step {
            case .begin(let number): tracker.beginExchange(number, at: .zero)
            case .send(let bytes, let number):
                let progress = TransferProgress(completedBytes: Int64(bytes), totalBytes: 9)
                values.append(tracker.send(progress, by: number, at: .zero)?.completedBytes)
            case .head(let number): tracker.noteHead(of: number)
            case .end(let number): values.append(tracker.endExchange(number, at: .zero)?.completedBytes)
            }
        }
        #expect(values.compactMap(\.self) == reported, "\(situation)")
    }

    @Test func `what is received is that of the exchange that goes on, from its beginning`() {
        var tracker = ProgressTracker()
        tracker.beginExchange(1, at: .zero)
        tracker.beginExchange(2, at: .zero)
        let progress = [4, 7, 9].map { TransferProgress(completedBytes: $0, totalBytes: 9) }
        #expect(tracker.receive(progress[0], by: 1, at: .zero) == nil)
        #expect(tracker.receive(progress[1], by: 2, at: .zero) == nil)
        #expect(tracker.endExchange(2, at: .zero) == nil)
        #expect(tracker.accept(at: .zero)?.completedBytes == 4)
        #expect(tracker.receive(progress[1], by: 2, at: .zero) == nil)
        #expect(tracker.receive(progress[2], by: 1, at: .zero)?.completedBytes == 9)
    }

    /// As with hedging, where the head of the request that lost arrives before its cancellation takes effect.
    @Test func `the response's own exchange has the progress although another was answered and ended later`() {
        var tracker = ProgressTracker()
        tracker.beginExchange(1, at: .zero)
        let progress = [4, 9].map { TransferProgress(completedBytes: $0, totalBytes: 9) }
        #expect(tracker.send(progress[1], by: 1, at: .zero)?.completedBytes == 9)
        tracker.beginExchange(2, at: .zero)
        #expect(tracker.send(progress[0], by: 2, at: .zero)?.completedBytes == 4)
        tracker.noteHead(of: 1)
        #expect(tracker.receive(progress[1], by: 1, at: .zero) == nil)
        #expect(tracker.endExchange(1, at: .zero) == nil)
        tracker.noteHead(of: 2)
        #expect(tracker.receive(progress[0], by: 2, at: .zero) == nil)
        #expect(tracker.endExchange(2, at: .zero) == nil)
        #expect(tracker.select(1, at: .zero)?.completedBytes == 9)
        #expect(tracker.accept(at: .zero)?.completedBytes == 9)
        #expect(tracker.complete(9) == nil)
    }
}

@Suite struct RateEstimateTests {
    @Test func `a steady transfer has a constant rate from the first measurement on`() {
        var rate = RateEstimate()
        #expect(rate.bytesPerSecond == nil)
        for tenth in 0...50 { rate.update(bytes: Int64(tenth) * 1000, at: .milliseconds(tenth * 100)) }
        let speed = rate.bytesPerSecond ?? 0
        #expect(abs(speed - 10_000) < 0.01)
    }

    @Test func `measurements that follow too closely are ignored`() {
        var rate = RateEstimate()
        rate.update(bytes: 0, at: .zero)
        rate.update(bytes: 1_000_000, at: .milliseconds(1))
        #expect(rate.bytesPerSecond == nil)
        rate.update(bytes: 1_000_000, at: .seconds(1))
        #expect(rate.bytesPerSecond == 1_000_000)
    }

    @Test func `the weight of a new rate increases with its duration`() {
        var rate = RateEstimate()
        rate.update(bytes: 0, at: .zero)
        rate.update(bytes: 1000, at: .seconds(1))
        // 1000 + (0 - 1000) * 1.5 / (1.5 + 1.5)
        rate.update(bytes: 1000, at: .milliseconds(2500))
        #expect(rate.bytesPerSecond == 500)
    }

    @Test func `fewer bytes than before start another transfer`() {
        var rate = RateEstimate()
        rate.update(bytes: 0, at: .zero)
        rate.update(bytes: 1000, at: .seconds(1))
        rate.update(bytes: 0, at: .seconds(2))
        #expect(rate.bytesPerSecond == 1000)
    }
}

@Suite struct ProgressSumTests {
    private func progress(_ completed: Int64, _ total: Int64?, _ rate: Double? = nil) -> TransferProgress {
        var progress = TransferProgress(completedBytes: completed, totalBytes: total)
        progress.bytesPerSecond = rate
        return progress
    }

    @Test func `the total is known when that of each task is`() {
        var sum = ProgressSum(count: 2)
        sum.update(0, progress(1, 10), at: .zero)
        #expect(sum.value == progress(1, nil))
        sum.update(1, progress(2, 20), at: .zero)
        #expect(sum.value == progress(3, 30))
        sum.update(0, progress(5, nil), at: .zero)
        #expect(sum.value == progress(7, nil))
    }

    @Test func `there is no sum before the first report or end of a task`() {
        var sum = ProgressSum(expecting: [10, nil])
        for isSuspended in [true, false] {
            sum.setSuspended(0, isSuspended)
            #expect(sum.value == nil)
        }
        sum.finish(0)
        #expect(sum.value == progress(0, nil))
        sum = ProgressSum(expecting: [10, nil])
        sum.update(1, progress(0, nil), at: .zero)
        #expect(sum.value == progress(0, nil))
    }

    @Test func `a task that has ended counts as its completed bytes`() {
        var sum = ProgressSum(count: 2)
        sum.update(0, progress(4, 10), at: .zero)
        sum.finish(0)
        sum.finish(0)
        sum.update(1, progress(2, 20), at: .zero)
        #expect(sum.value == progress(6, 24))
        #expect(!sum.isOver)
        sum.finish(1)
        #expect(sum.value == progress(6, 6))
        #expect(sum.isOver)
    }

    @Test func `an expected size counts until more has arrived`() {
        var sum = ProgressSum(expecting: [10, 20])
        #expect(sum.value == progress(0, 30))
        sum.update(0, progress(10, nil), at: .zero)
        #expect(sum.value == progress(10, 30))
        sum.update(0, progress(11, nil), at: .zero)
        #expect(sum.value == progress(11, nil))
        sum.finish(0)
        #expect(sum.value == progress(11, 31))
    }

    @Test func `a negative expected size is an unknown one`() {
        var sum = ProgressSum(expecting: [-1, 10])
        #expect(sum.value == nil)
        sum.update(0, progress(5, nil), at: .zero)
        #expect(sum.value == progress(5, nil))
        sum.finish(0)
        #expect(sum.value == progress(5, 15))
    }

    @Test func `a task that ends before it starts counts as zero bytes`() {
        var sum = ProgressSum(count: 1)
        sum.finish(0)
        #expect(sum.value == progress(0, 0))
    }

    @Test func `the rate is that of the sum until all tasks have ended`() throws {
        var sum = ProgressSum(count: 8)
        // Eight tasks one after the other, each of half a megabyte, at 20 MB/s.
        var time = Duration.zero
        for index in 0..<8 {
            for step in 0...5 {
                sum.update(index, progress(Int64(step) * 100_000, 500_000), at: time)
                if step > 1 || index > 0 { #expect(abs(try #require(sum.value?.bytesPerSecond) - 20e6) < 1) }
                if step < 5 { time += .milliseconds(5) }
            }
            sum.finish(index)
        }
        #expect(sum.value?.bytesPerSecond == nil)
    }

    @Test func `there is no rate while all tasks are suspended`() {
        var sum = ProgressSum(count: 2)
        sum.update(0, progress(0, 1_000), at: .zero)
        sum.update(0, progress(100, 1_000), at: .seconds(1))
        #expect(sum.value?.bytesPerSecond == 100)
        sum.setSuspended(0, true)
        #expect(sum.value?.bytesPerSecond == 100)
        sum.setSuspended(1, true)
        #expect(sum.value?.bytesPerSecond == nil)
        sum.setSuspended(0, false)
        // The time of the suspension does not count.
        sum.update(0, progress(100, 1_000), at: .seconds(100))
        sum.update(0, progress(200, 1_000), at: .seconds(101))
        #expect(sum.value?.bytesPerSecond == 100)
    }

    @Test func `implausible sizes do not trap`() {
        var sum = ProgressSum(count: 2)
        sum.update(0, progress(.max, .max), at: .zero)
        sum.update(1, progress(.max, .max), at: .zero)
        _ = sum.value?.fraction
        sum.update(0, progress(1, 2), at: .zero)
        sum.update(1, progress(1, 2), at: .zero)
        #expect(sum.value == progress(2, 4))
    }
}
