// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Streaming and backpressure".

func readLines(_ api: SessionManager, url: URL) async throws {
    try await api.withResponse(for: Request(url: url)) { head, body in
        guard head.status.code == 200 else { return }
        for try await line in body.lines { print(line) }
    }
}

func readChunks(_ api: SessionManager, url: URL) async throws -> Int {
    try await api.withResponse(for: Request(url: url)) { head, body in
        var count = 0
        for try await chunk in body { count += chunk.count }
        return count
    }
}

func readAtMost(_ api: SessionManager, url: URL) async throws -> Data {
    try await api.withResponse(for: Request(url: url)) { head, body in
        try await body.collect(upTo: 1 << 20)
    }
}

func saveBody(_ api: SessionManager, url: URL) async throws -> Int64 {
    try await api.withResponse(for: Request(url: url)) { head, body in
        try await body.write(to: "disk.iso")
    }
}

func sendStream(_ api: SessionManager, url: URL) async throws {
    let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
    async let response = api.data(for: Request(method: .post, url: url, body: .stream(chunks)))
    for number in 1...3 { continuation.yield(Data("message \(number)\n".utf8)) }
    continuation.finish()
    print(try await response.statusCode)
}

struct HintPrinter: TransferEventSink {
    func receive(_ event: TransferEvent) {
        if case .informational(let head) = event { print(head.status.code, head.headers) }
    }
}

func hearEvents(_ api: SessionManager, url: URL) async throws {
    try await api.withResponse(for: Request(url: url), reporting: HintPrinter()) { head, body in
        for try await chunk in body { print(chunk.count) }
        print(body.trailers ?? [:], body.metrics?.total ?? .zero)
    }
}
