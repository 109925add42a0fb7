// SPDX-License-Identifier: MIT

// Reads a feed repeatedly with a cache on the disk, and prints where each response came from:
//
//     swift run CachedFeed          from a server in this process
//     swift run CachedFeed URL      from another server; run it twice to see responses of the first run

import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials

let directory = FileManager.default.temporaryDirectory.appending(path: "CachedFeed").path

let reader = SessionManager {
    $0.cache = .disk(directory, capacity: 16 << 20)
}

func read(_ url: URL, _ policy: CachePolicy = .protocolPolicy) async throws {
    var request = Request(url: url)
    request.cachePolicy = policy
    let response = try await reader.data(for: request)
    let age = response.headers[.age].map { ", \($0) s old" } ?? ""
    print("\(policy): \(response.value.count) bytes from \(response.metrics.source)\(age)")
}

do {
    if let argument = CommandLine.arguments.dropFirst().first {
        guard let url = URL(string: argument) else { throw CancellationError() }
        try await read(url)
        try await read(url, .revalidate)
    } else {
        try await StubServer.with { server in
            server.fallback { request in
                request.headers["If-None-Match"] == "\"feed-1\""
                    ? .status(304, headers: ["ETag": "\"feed-1\""])
                    : .data(Data("<feed/>".utf8), headers: ["ETag": "\"feed-1\"", "Cache-Control": "max-age=60"])
            }
            try await read(server.url("/feed"), .reload)
            try await read(server.url("/feed"))
            try await read(server.url("/feed"), .revalidate)
            try await read(server.url("/feed"), .returnCacheDontLoad)
        }
    }
    for entry in await reader.configuration.cache?.entries() ?? [] { print("Stored: \(entry.url)") }
} catch {
    print(error)
}
