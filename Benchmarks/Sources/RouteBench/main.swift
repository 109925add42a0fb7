// SPDX-License-Identifier: MIT

import ANReachability
import Glibc

// Measures the CPU time to request 1,000 paths from the kernel, as the reachability monitor does for each target after a
// change of the network; fails if it exceeds the limit.
let bar: Duration = .milliseconds(25)

/// The CPU time that the process has used.
func cpuTime() -> Duration {
    var time = timespec()
    unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

var socket = try RouteSocket()
guard let loopback = IPAddress("127.0.0.1") else { exit(1) }
var times: [Duration] = []
for _ in 0..<21 {
    let start = cpuTime()
    for _ in 0..<1_000 {
        guard try socket.path(to: loopback)?.kind == .loopback else {
            print("The loopback interface is not enabled.")
            exit(1)
        }
    }
    times.append(cpuTime() - start)
}
let median = times.sorted()[times.count / 2]
print("1,000 paths: \(median / .milliseconds(1)) ms of CPU time (bar: \(bar / .milliseconds(1)) ms)")
exit(median <= bar ? 0 : 1)
