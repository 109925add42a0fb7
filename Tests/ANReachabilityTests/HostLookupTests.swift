// SPDX-License-Identifier: MIT

import ANReachability
import ANSystem
import Testing

@Suite struct HostLookupTests {
    private var lookup = HostLookup()
    private let found = [IPAddress("192.0.2.1")].compactMap(\.self)

    private func second(_ count: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: count * 1_000_000_000)
    }

    @Test mutating func `a name with addresses is looked up again when the default route changes`() {
        #expect(lookup.addresses == nil)
        #expect(lookup.finish(found, at: second(0)) == false)
        #expect(lookup.addresses == found)
        #expect(lookup.retryTime == nil)
        #expect(lookup.noteChange(ofDefaultRoute: false) == false)
        #expect(lookup.noteChange(ofDefaultRoute: true) == true)
        // A lookup is running already.
        #expect(lookup.noteTime(second(1000)) == false)
        #expect(lookup.addresses == found)
    }

    @Test mutating func `a name without addresses is looked up again on any change`() {
        #expect(lookup.finish([], at: second(0)) == false)
        #expect(lookup.hasFailed)
        #expect(lookup.noteChange(ofDefaultRoute: false) == true)
        #expect(lookup.retryTime == nil)
    }

    @Test mutating func `an address with a zone is looked up again on any change`() throws {
        var address = try #require(IPAddress("fe80::1"))
        address.interface = 2
        #expect(lookup.finish([address], at: second(0)) == false)
        #expect(lookup.noteChange(ofDefaultRoute: false) == true)
    }

    @Test mutating func `a change during a lookup starts another one after it`() {
        #expect(lookup.noteChange(ofDefaultRoute: true) == false)
        #expect(lookup.noteChange(ofDefaultRoute: true) == false)
        #expect(lookup.finish([], at: second(0)) == true)
        #expect(lookup.finish(found, at: second(1)) == false)
        #expect(!lookup.hasFailed)
    }

    @Test mutating func `failed lookups are repeated after 1, 2, 4 … 30 seconds`() {
        var now: Int64 = 0
        var pauses: [Int64] = []
        for _ in 0..<7 {
            #expect(lookup.finish([], at: second(now)) == false)
            var pause: Int64 = 0
            while pause < 100, !lookup.noteTime(second(now + pause)) { pause += 1 }
            pauses.append(pause)
            now += pause
        }
        #expect(pauses == [1, 2, 4, 8, 16, 30, 30])
        // After a success the pauses start at one second again.
        #expect(lookup.finish(found, at: second(now)) == false)
        #expect(lookup.noteChange(ofDefaultRoute: true) == true)
        #expect(lookup.finish([], at: second(now)) == false)
        #expect(lookup.retryTime == second(now + 1))
    }
}
