// SPDX-License-Identifier: MIT

// Performs many exchanges of all kinds with the server of `scripts/servers/interop/node.mjs`, compares every body, and
// prints what is left at the end:
//
//     Endurance URL AUTHORITY COUNT [SEED [PERCENTAGE OF ABANDONED EXCHANGES]]

import AsyncNetworking
import FoundationEssentials
import Glibc

guard CommandLine.arguments.count >= 4, let server = URL(string: CommandLine.arguments[1]),
    let count = Int(CommandLine.arguments[3])
else {
    print("usage: Endurance URL AUTHORITY COUNT [SEED [PERCENTAGE OF ABANDONED EXCHANGES]]")
    exit(2)
}
let numbers = CommandLine.arguments.dropFirst(4).map { Int($0) ?? 0 }
let seed = UInt64(clamping: numbers.first ?? 1)
let percentage = numbers.count > 1 ? numbers[1] : 2
let file = URL(filePath: "/tmp/an-endurance-\(getpid())")
try Pattern.bytes.write(to: file)
var hasFailed = false

/// The number of entries of a directory in `/proc/self`.
func entries(_ name: String) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/\(name)").count) ?? 0
}

/// The resident memory, as the system prints it.
func residentMemory() -> String {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return line.map { String($0.dropFirst("VmRSS:".count).drop { $0.isWhitespace }) } ?? "unknown"
}

for version in [HTTPVersionPolicy.http1, .http2, .automatic] {
    let before = (descriptors: entries("fd"), threads: entries("task"))
    let tally = await {
        let manager = SessionManager {
            $0.proxy = .none
            $0.tls.trustRoots = .file(CommandLine.arguments[2])
            $0.httpVersion = version
        }
        let runner = Runner(manager, at: server, file: file)
        let clock = ContinuousClock()
        let start = clock.now
        let tally = await runner.run(count: count / 3, workers: 32, seed: seed, abandoning: percentage)
        let version = try? await manager.get(server.appending(path: "pattern/0/1/0")).head.version.rawValue
        print("\(version ?? "no answer"): \(tally.started) exchanges in \(start.duration(to: clock.now))")
        await manager.shutdown()
        return tally
    }()
    print(
        "  right \(tally.right), abandoned \(tally.abandoned), \(tally.failures.values.reduce(0, +)) failed, "
            + "\(tally.wrong.values.reduce(0, +)) wrong")
    let problems = tally.failures.merging(tally.wrong, uniquingKeysWith: +).sorted { $0.value > $1.value }
    for problem in problems.prefix(20) { print("  \(problem.value) × \(problem.key)") }
    try? await Task.sleep(for: .milliseconds(100))
    print(
        "  descriptors \(before.descriptors) → \(entries("fd")), threads \(before.threads) → \(entries("task")), "
            + "resident memory \(residentMemory())")
    hasFailed = hasFailed || !tally.failures.isEmpty || !tally.wrong.isEmpty
}
try? FileManager.default.removeItem(at: file)
exit(hasFailed ? 1 : 0)
