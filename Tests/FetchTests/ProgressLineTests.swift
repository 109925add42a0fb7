// SPDX-License-Identifier: MIT

import Fetch
import Testing

@Suite struct ProgressLineTests {
    private func line(_ completed: Int64, of total: Int64?, label: String = "disk.iso") -> ProgressLine {
        var rate = RateEstimate()
        rate.update(bytes: completed, at: .seconds(2))
        return ProgressLine(
            label: label, completedBytes: completed, totalBytes: total, elapsed: .seconds(2), rate: rate)
    }

    @Test func `a known total is shown as a bar with rate and time left`() {
        #expect(
            line(50_000_000, of: 200_000_000).bar(columns: 100)
                == "disk.iso  [=======>                      ]  25%  50.0 MB of 200.0 MB  25.0 MB/s  0:06 left")
    }

    @Test func `an unknown total is shown as the received bytes and the elapsed time`() {
        #expect(line(50_000_000, of: nil).bar(columns: 100) == "disk.iso  50.0 MB  25.0 MB/s  0:02")
    }

    @Test func `the bar is full at the end`() {
        #expect(
            line(1000, of: 1000).bar(columns: 90)
                == "disk.iso  [==============================]  100%  1.0 kB of 1.0 kB  500 B/s  0:02")
    }

    @Test(arguments: 0...130)
    func `no line is wider than the terminal`(columns: Int) {
        for label in ["", "disk.iso", String(repeating: "long", count: 60)] {
            for total in [nil, 200_000_000] as [Int64?] {
                #expect(line(50_000_000, of: total, label: label).bar(columns: columns).count <= max(0, columns - 1))
            }
        }
    }

    @Test func `more bytes than the total are shown as 100 percent`() {
        #expect(line(300, of: 200).plain == "disk.iso: 100%  300 B of 200 B  150 B/s  0:02")
    }

    @Test func `a log has a line without a bar`() {
        #expect(line(1000, of: 4000).plain == "disk.iso: 25%  1.0 kB of 4.0 kB  500 B/s  0:06 left")
        #expect(line(1000, of: nil, label: "").plain == "1.0 kB  500 B/s  0:02")
    }
}
