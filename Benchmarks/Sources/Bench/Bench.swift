// SPDX-License-Identifier: MIT

import ClientKit
import Foundation

/// Measures all clients: `Bench [--rounds N] [--workload NAME] [--output FILE]`.
///
/// It requires the environment from `scripts/servers/servers run`; `make bench` provides it. Without a server and a
/// libcurl that support HTTP/3, its workloads are left out.
@main
struct Bench {
    static func main() {
        do {
            try run()
        } catch {
            FileHandle.standardError.write(Data("Bench: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run() throws {
        let arguments = try Arguments(CommandLine.arguments)
        let rounds = try arguments.integer("--rounds") ?? 5
        let runner = try Runner(environment: ProcessInfo.processInfo.environment)
        let available = Workload.all.filter(runner.isAvailable)
        let workloads = available.filter { $0.name == arguments["--workload"] ?? $0.name }
        guard !workloads.isEmpty else {
            throw Failure("the workloads are \(available.map(\.name).joined(separator: ", "))")
        }

        var samples: [String: [Client: [Sample]]] = [:]
        for round in 0..<rounds {
            print("Round \(round + 1) of \(rounds)")
            for workload in workloads {
                let clients = workload.clients.filter(runner.isAvailable)
                // Rotate the order in each round, so that no client always runs after the same other one.
                for index in clients.indices {
                    let client = clients[(index + round) % clients.count]
                    guard let sample = try runner.run(workload, with: client) else { continue }
                    samples[workload.name, default: [:]][client, default: []].append(sample)
                }
            }
        }

        let entries = workloads.flatMap { workload in
            workload.clients.compactMap { client in
                Sample.median(of: samples[workload.name]?[client] ?? []).map {
                    Report.Entry(workload: workload, client: client, median: $0)
                }
            }
        }
        let report = Report(entries: entries)
        print("", report.table, separator: "\n")
        if let output = arguments["--output"] { try report.json().write(to: URL(fileURLWithPath: output)) }
    }
}
