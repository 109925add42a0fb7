// SPDX-License-Identifier: MIT

// Downloads a file and prints its progress:
//
//     swift run DownloadWithProgress              from a server in this process, in two seconds
//     swift run DownloadWithProgress URL FILE     from another server

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

func download(_ url: URL, to path: String) async throws {
    let api = SessionManager()
    let download = api.download(Request(url: url), to: .file(path))
    for await progress in download.progress {
        let percent = progress.fraction.map { "\(Int($0 * 100))%" } ?? "?"
        let left = progress.timeLeft.map { "\($0.components.seconds) s left" } ?? ""
        print(percent, progress.completedBytes, "bytes", left)
    }
    let file = try await download.value
    print("\(file.path) has \(file.size) bytes.")
}

do {
    let arguments = CommandLine.arguments.dropFirst()
    if arguments.count == 2, let url = URL(string: arguments[1]) {
        try await download(url, to: arguments[2])
    } else {
        try await StubServer.with { server in
            server.route("/disk.iso", .drip(bytes: 100_000, every: .milliseconds(100), body: .generated(2_000_000)))
            try await download(server.url("/disk.iso"), to: "/dev/null")
        }
    }
} catch {
    print(error)
}
