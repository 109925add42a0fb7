// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Streaming and backpressure".

func readLines(_ api: SessionManager, url: URL) async throws {
    // snippet.streaming-a-response
    try await api.withResponse(for: Request(url: url)) { head, body in
        guard head.status.code == 200 else { return }
        for try await line in body.lines { print(line) }
    }
    // snippet.end
}

func readChunks(_ api: SessionManager, url: URL) async throws -> Int {
    try await api.withResponse(for: Request(url: url)) { head, body in
        var count = 0
        // snippet.streaming-a-response-2
        for try await chunk in body { count += chunk.count }
        // snippet.end
        return count
    }
}

func readAtMost(_ api: SessionManager, url: URL) async throws -> Data {
    try await api.withResponse(for: Request(url: url)) { head, body in
        // snippet.streaming-a-response-3
        try await body.collect(upTo: 1 << 20)
        // snippet.end
    }
}

func saveBody(_ api: SessionManager, url: URL) async throws -> Int64 {
    try await api.withResponse(for: Request(url: url)) { head, body in
        // snippet.streaming-a-response-4
        try await body.write(to: "disk.iso")
        // snippet.end
    }
}

func sendStream(_ api: SessionManager, url: URL) async throws {
    // snippet.streaming-a-request
    let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
    async let response = api.data(for: Request(method: .post, url: url, body: .stream(chunks)))
    for number in 1...3 { continuation.yield(Data("message \(number)\n".utf8)) }
    continuation.finish()
    print(try await response.statusCode)
    // snippet.end
}

// snippet.interim-responses-trailers-and-metrics
struct HintPrinter: ExchangeEventSink {
    func receive(_ event: ExchangeEvent) {
        if case .informational(let head) = event { print(head.status.code, head.headers) }
    }
}
// snippet.end

func hearEvents(_ api: SessionManager, url: URL) async throws {
    // snippet.interim-responses-trailers-and-metrics-2
    try await api.withResponse(for: Request(url: url), reporting: HintPrinter()) { head, body in
        for try await chunk in body { print(chunk.count) }
        print(body.trailers ?? [:], body.metrics?.total ?? .zero)
    }
    // snippet.end
}
