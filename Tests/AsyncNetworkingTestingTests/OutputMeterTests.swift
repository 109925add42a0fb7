// SPDX-License-Identifier: MIT

import AsyncNetworkingTesting
import Testing

@Suite struct OutputMeterTests {
    /// Returns the steps for a number of bytes, up to an ending.
    private func steps(_ meter: inout OutputMeter, for count: Int) -> [OutputMeter.Step] {
        var steps: [OutputMeter.Step] = []
        var left = count
        while left > 0 {
            let step = meter.next(left)
            steps.append(step)
            switch step {
            case .send(let sent): left -= sent
            case .wait: break
            case .end: return steps
            }
        }
        return steps
    }

    @Test func `all bytes are sent at once without limits`() {
        var meter = OutputMeter()
        #expect(steps(&meter, for: 1000) == [.send(1000)])
        #expect(meter.pendingEnding == nil)
    }

    @Test func `a pace sends a piece and waits before each further one`() {
        var meter = OutputMeter()
        meter.setPace(.init(bytes: 4, every: .seconds(1)))
        #expect(steps(&meter, for: 3) == [.send(3)])
        #expect(steps(&meter, for: 6) == [.send(1), .wait(.seconds(1)), .send(4), .wait(.seconds(1)), .send(1)])
        meter.setPace(nil)
        #expect(steps(&meter, for: 6) == [.send(6)])
    }

    @Test(arguments: [0, 1, 5])
    func `a cut occurs after exactly the given number of bytes`(count: Int) {
        var meter = OutputMeter()
        meter.setCut(after: Int64(count), by: .reset)
        #expect(steps(&meter, for: 10) == (count > 0 ? [.send(count)] : []) + [.end(.reset)])
        #expect(meter.pendingEnding == .reset)
    }

    @Test func `a cut after more bytes waits for them`() {
        var meter = OutputMeter()
        meter.setCut(after: 12, by: .close)
        #expect(steps(&meter, for: 10) == [.send(10)])
        #expect(steps(&meter, for: 10) == [.send(2), .end(.close)])
    }

    @Test func `a cut and a pace can be combined`() {
        var meter = OutputMeter()
        meter.setCut(after: 5, by: .close)
        meter.setPace(.init(bytes: 3, every: .seconds(1)))
        #expect(steps(&meter, for: 9) == [.send(3), .wait(.seconds(1)), .send(2), .end(.close)])
    }

    @Test func `a rate is converted to a piece and a pause`() {
        #expect(Script.Pace.bytesPerSecond(2048, chunk: 1024) == .init(bytes: 1024, every: .milliseconds(500)))
        #expect(Script.Pace.bytesPerSecond(0, chunk: 0).bytes == 1)
    }
}
