// SPDX-License-Identifier: MIT

// Downloads and uploads a file, both at no more than a given number of bytes per second, and faster at night.

import AsyncNetworking
import FoundationEssentials
import Glibc

let words = CommandLine.arguments
guard words.count == 3, let source = URL(string: words[1]), let target = URL(string: words[2]) else {
    print("usage: SOURCE TARGET")
    exit(2)
}
let limit = SpeedLimit(bytesReceivedPerSecond: 100_000, bytesSentPerSecond: 50_000)
let api = SessionManager { $0.speedLimits = [limit] }

// Both take effect on transfers that are running.
let hour = Int(Date().timeIntervalSince1970) / 3_600 % 24
if (0..<6).contains(hour) { (limit.bytesReceivedPerSecond, limit.bytesSentPerSecond) = (nil, nil) }

_ = try await api.download(Request(url: source), to: "copy").value
_ = try await api.data(for: Request(method: .put, url: target, body: .file("copy")))
