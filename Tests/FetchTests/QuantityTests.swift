// SPDX-License-Identifier: MIT

import Fetch
import Testing

@Suite struct QuantityTests {
    @Test(arguments: [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_049_999, "1.0 MB"), (999_949, "999.9 kB"),
        (999_951, "1.0 MB"), (67_108_864, "67.1 MB"), (Int64.max, "9.2 EB"), (-5, "0 B"),
    ])
    func `bytes are counted in powers of 1000`(count: Int64, text: String) {
        #expect(Quantity.bytes(count) == text)
    }

    @Test(arguments: [
        (Duration.zero, "0:00"), (.milliseconds(1), "0:01"), (.seconds(59), "0:59"), (.seconds(59.5), "1:00"),
        (.seconds(3599), "59:59"), (.seconds(3723), "1:02:03"), (.seconds(-3), "0:00"),
    ])
    func `clock times are rounded up to seconds`(duration: Duration, text: String) {
        #expect(Quantity.clock(duration) == text)
    }

    @Test(arguments: [
        (Duration.microseconds(40), "0.0 ms"), (.microseconds(31_549), "31.5 ms"), (.milliseconds(1000), "1.0 s"),
        (.seconds(75), "75.0 s"),
    ])
    func `times have one decimal place`(duration: Duration, text: String) {
        #expect(Quantity.time(duration) == text)
    }

    @Test func `infinite and negative rates do not trap`() {
        #expect(Quantity.rate(.infinity) == "9.0 EB/s")
        #expect(Quantity.rate(-1) == "0 B/s")
    }
}
