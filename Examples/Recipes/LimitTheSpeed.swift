// SPDX-License-Identifier: MIT

// Downloads and uploads a file at no more than a given number of bytes per second.

import AsyncNetworking
import FoundationEssentials

/// Pauses so that what has passed stays below a rate.
struct SpeedLimit {
    let bytesPerSecond: Int
    var bytes = 0
    let start = ContinuousClock.now

    mutating func pass(_ count: Int) async throws {
        bytes += count
        let due = start + .seconds(Double(bytes) / Double(bytesPerSecond))
        if due > .now { try await Task.sleep(until: due) }
    }
}

let source = URL(string: CommandLine.arguments[1]) ?? URL(filePath: "/")
let target = URL(string: CommandLine.arguments[2]) ?? URL(filePath: "/")
let api = SessionManager()

// A reader that waits slows the server down, because the connection is not read meanwhile.
try await api.withResponse(for: Request(url: source), validating: .statusOnly) { _, body in
    var (limit, data) = (SpeedLimit(bytesPerSecond: 100_000), Data())
    for try await chunk in body {
        data += chunk
        try await limit.pass(chunk.count)
    }
    try data.write(to: URL(filePath: "copy"))
}

let body = try RequestBody.file("copy").throttled(.rate(bytesPerSecond: 100_000))
_ = try await api.data(for: Request(method: .put, url: target, body: body))
