// SPDX-License-Identifier: MIT

// Performs the scenario in its only argument, in JSON, and prints the outcomes as one line of JSON:
//
//     InteropClient '{"id": "a", "rounds": 20, "steps": [{"method": "GET", "url": "https://localhost:8443/small.json"}]}'

import FoundationEssentials
import Glibc

do {
    let scenario = try JSONDecoder().decode(Scenario.self, from: Data((CommandLine.arguments.last ?? "").utf8))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    print(String(decoding: try encoder.encode(try await Runner(scenario: scenario).run()), as: UTF8.self))
} catch {
    print("InteropClient: \(error)")
    exit(2)
}
