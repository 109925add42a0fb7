// SPDX-License-Identifier: MIT

import ANReachability
import Glibc

// Measures the time to process 1,000 messages about new routes; fails if it exceeds the limit.
let bar: Duration = .milliseconds(20)

func bytes(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }

/// Returns an attribute RTA_DST, RTA_OIF, RTA_GATEWAY or RTA_PRIORITY of rtnetlink(7), with a payload of four bytes.
func attribute(_ type: UInt8, _ payload: [UInt8]) -> [UInt8] { [8, 0, type, 0] + payload }

/// Messages RTM_NEWROUTE about unicast routes in the main table.
let messages: [[UInt8]] = (0..<1_000).map { number in
    let payload: [UInt8] =
        [2, 24, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0]
        + attribute(1, [10, UInt8(number / 250), UInt8(number % 250), 0]) + attribute(4, bytes(2))
        + attribute(5, [192, 0, 2, 1]) + attribute(6, bytes(100))
    return bytes(UInt32(16 + payload.count)) + [24, 0, 0, 0] + bytes(1) + bytes(99) + payload
}

/// Returns the end of a dump: NLMSG_DONE.
func end(_ request: RouteReader.Request) -> [UInt8] {
    bytes(20) + [3, 0, 2, 0] + bytes(request.sequence) + bytes(4711) + bytes(0)
}

var times: [Duration] = []
for _ in 0..<21 {
    var reader = RouteReader(port: 4711) { _ in nil }
    while let request = reader.nextRequest() { _ = reader.receive(end(request)[...]) }
    let before = reader.revision
    let time = ContinuousClock().measure {
        for message in messages { _ = reader.receive(message[...]) }
    }
    guard reader.revision == before + messages.count else {
        print("The messages were not parsed.")
        exit(1)
    }
    times.append(time)
}
let median = times.sorted()[times.count / 2]
print("1,000 route messages: \(median / .milliseconds(1)) ms (bar: \(bar / .milliseconds(1)) ms)")
exit(median <= bar ? 0 : 1)
