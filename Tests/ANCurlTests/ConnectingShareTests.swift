// SPDX-License-Identifier: MIT

import ANCurl
import ANSystem
import Testing

@Suite struct ConnectingShareTests {
    private static let start = MonotonicInstant.now

    private static func ready(_ numbers: Int32...) -> [ReadyDescriptor] {
        numbers.map { ReadyDescriptor(number: $0, readiness: .readable) }
    }

    @Test func `each descriptor has its turn, whichever are always ready`() {
        var share = ConnectingShare()
        var handled: [Int32] = []
        for _ in 0..<7 {
            let next = share.ordered(Self.ready(9, 4, 7))[0].number
            handled.append(next)
            _ = share.note(next, since: Self.start, at: Self.start)
        }
        #expect(handled == [4, 7, 9, 4, 7, 9, 4])
        #expect(share.ordered(Self.ready(3, 5, 9)).map(\.number) == [5, 9, 3])
        #expect(share.ordered([]).isEmpty)
    }

    @Test func `a turn handles one, and others for a millisecond`() {
        var share = ConnectingShare()
        for (elapsed, expected) in [(0, true), (999, true), (1_000, false), (5_000, false)] {
            let now = Self.start.advanced(by: .microseconds(elapsed))
            #expect(share.note(1, since: Self.start, at: now) == expected, "after \(elapsed) µs")
        }
    }

    @Test func `what was left excuses exchanges for a second`() {
        var share = ConnectingShare()
        let turns = [
            (0, true, true), (999, true, true), (1_000, true, false), (1_001, false, false), (1_002, true, true),
        ]
        for (elapsed, leavesSome, expected) in turns {
            let now = Self.start.advanced(by: .milliseconds(elapsed))
            #expect(share.mayHideBytes(leavingSome: leavesSome, at: now) == expected, "after \(elapsed) ms")
        }
    }
}
