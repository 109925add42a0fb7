// SPDX-License-Identifier: MIT

/// Decides how many segments a download has at a time, by the speed of all together.
///
/// It doubles the number, waits until the new segments have begun, and measures: if the speed has not grown by at least
/// 30 % of what as many more segments should bring, it returns to the number before, and tries no more until the speed
/// has fallen to less than half.
///
/// | measured | speed | action |
/// |---|---|---|
/// | at the first number, or after an increase that brought enough | – | increase |
/// | after an increase that brought too little | – | return to the number before |
/// | after that | at least half of the best | keep |
/// | after that | less than half of the best | increase |
package struct SegmentCountController: Hashable, Sendable {
    /// The number of segments that should run.
    package private(set) var count = 1
    private let limit: Int
    private var phase = Phase.measuring(before: nil)
    /// The number of measurements to ignore, because segments have just begun.
    private var warmUp = 1

    private enum Phase: Hashable {
        /// The speed at this number is being measured; `before` is that at the number before.
        case measuring(before: Measurement?)
        /// More segments brought nothing, when the speed was this.
        case settled(bytesPerSecond: Double)
    }

    private struct Measurement: Hashable {
        var count: Int
        var bytesPerSecond: Double
    }

    /// Creates a controller that begins with one segment.
    ///
    /// - Parameter limit: The maximum number of segments, at least 1.
    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    /// Adds a measurement of the speed of all segments together, made while `running` segments received bytes.
    ///
    /// - Returns: Whether the number has changed.
    package mutating func measure(_ bytesPerSecond: Double, running: Int) -> Bool {
        guard running >= count else { return false }
        guard warmUp == 0 else {
            warmUp -= 1
            return false
        }
        switch phase {
        case .measuring(let before?):
            let expected = Double(count - before.count) / Double(before.count)
            guard bytesPerSecond >= before.bytesPerSecond * (1 + 0.3 * expected) else {
                phase = .settled(bytesPerSecond: max(bytesPerSecond, before.bytesPerSecond))
                return change(to: before.count)
            }
            return increase(from: bytesPerSecond)
        case .measuring(nil):
            return increase(from: bytesPerSecond)
        case .settled(let best):
            return bytesPerSecond < best / 2 ? increase(from: bytesPerSecond) : false
        }
    }

    /// Notes that the servers do not accept more than a number of segments, at least 1. Returns whether there were more.
    package mutating func settle(at number: Int) -> Bool {
        guard max(1, number) < count else { return false }
        phase = .settled(bytesPerSecond: 0)
        return change(to: max(1, number))
    }

    private mutating func increase(from bytesPerSecond: Double) -> Bool {
        guard count < limit else {
            phase = .settled(bytesPerSecond: bytesPerSecond)
            return false
        }
        phase = .measuring(before: Measurement(count: count, bytesPerSecond: bytesPerSecond))
        return change(to: min(2 * count, limit))
    }

    private mutating func change(to number: Int) -> Bool {
        count = number
        warmUp = 1
        return true
    }
}

/// The speed of a segment.
package struct SegmentPace: Sendable {
    /// The bytes since the last measurement.
    private var bytes = 0
    /// The bytes per measurement, weighted towards recent ones.
    package private(set) var average: Double?
    /// The number of measurements.
    package private(set) var measurements = 0

    package init() {}

    package mutating func receive(_ count: Int) {
        bytes += count
    }

    package mutating func measure() {
        average = average.map { $0 * 0.75 + Double(bytes) * 0.25 } ?? Double(bytes)
        (bytes, measurements) = (0, measurements + 1)
    }
}

/// The usual speed of a segment while there are several, by which one that is much slower is found, also if it is the
/// last one.
package struct UsualPace: Sendable {
    private var average = 0.0
    /// The segments that have ended since the last measurement.
    private var ended: [SegmentPace] = []

    package init() {}

    /// Notes a segment that is complete, and may never have been measured.
    package mutating func end(_ pace: SegmentPace) {
        var pace = pace
        pace.measure()
        ended.append(pace)
    }

    /// Adds a measurement of all segments.
    package mutating func measure(_ running: [SegmentPace]) {
        let all = running + ended
        ended = []
        guard all.count > 1 else { return }
        average = max(average * 0.9, all.reduce(0) { $0 + ($1.average ?? 0) } / Double(all.count))
    }

    /// Whether a segment has been measured for long enough, and has less than a tenth of the usual speed. The next one
    /// to compare must be slower still: the servers may have become slow.
    package mutating func isMuchFaster(than pace: SegmentPace, patience: Int) -> Bool {
        guard pace.measurements >= patience, let own = pace.average, own * 10 < average else { return false }
        average /= 2
        return true
    }
}
