// SPDX-License-Identifier: MIT

// Runs simulated programs: `make simulate SECONDS=60 SEED=1 COUNT=1000 FAMILY=cache`. With TRACE=1, prints the traces
// of the seeds in place of what was found.

import Glibc
import SimulationWorld

/// The value of an environment variable, if it is set and not empty.
func setting(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
}

func now() -> Double {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

@main struct Simulate {
    static func main() async throws {
        let families = setting("FAMILY").map { $0.split(separator: ",").map(String.init) } ?? Exploration.families
        let seconds = setting("SECONDS").flatMap(Double.init) ?? 60
        let count = setting("COUNT").flatMap(UInt64.init)
        let first = setting("SEED").flatMap(UInt64.init) ?? UInt64(time(nil))
        let stopsAtFirst = setting("KEEP_GOING") == nil
        if setting("TRACE") != nil {
            for family in families {
                for offset in 0..<(count ?? 1) { print(try await Exploration.trace(family, seed: first &+ offset)) }
            }
            return
        }
        let start = now()
        var exploration = Exploration()
        var kinds: [String: Int] = [:]

        search: for offset in 0..<(count ?? .max) {
            for family in families {
                if count == nil, now() - start > seconds { break search }
                guard let finding = try await exploration.run(family, seed: first &+ offset) else { continue }
                kinds["\(finding.family) oracle \(finding.oracle)", default: 0] += 1
                print(
                    "FOUND after \(Int((now() - start) * 1_000) / 1_000) s: FAMILY=\(family) SEED=\(first &+ offset) \(finding.summary)"
                )
                if stopsAtFirst {
                    print(finding)
                    exit(1)
                }
            }
        }

        let elapsed = max(0.001, now() - start)
        print("\(exploration.runs) runs, \(exploration.calls) calls, \(exploration.steps) steps from seed \(first)")
        print(
            "\(Int(Double(exploration.calls) / elapsed)) calls/s, \(Int(Double(exploration.steps) / elapsed)) steps/s")
        for (name, count) in exploration.covered.sorted(by: { $0.key < $1.key }) { print("  \(name): \(count)") }
        if families.count == Exploration.families.count {
            let missing = Exploration.coverable.filter { exploration.covered[$0] == nil }
            print("never reached:", missing.isEmpty ? "nothing" : missing.joined(separator: ", "))
        }
        if !kinds.isEmpty { print("failures:", kinds.sorted { $0.key < $1.key }) }
        exit(kinds.isEmpty ? 0 : 1)
    }
}
