// SPDX-License-Identifier: MIT

import AsyncHTTPClient
import ClientKit
import FoundationEssentials
import NIOCore
import NIOHTTP1
import NIOSSL

/// async-http-client, with its async interface.
@main
struct AHCClient: BenchmarkClient {
    private let client: HTTPClient
    private let url: String

    init(_ options: Options) throws {
        url = options.url
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = options.connections
        configuration.httpVersion = options.prefersHTTP2 ? .automatic : .http1Only
        if let file = options.certificateAuthority {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(file)
            configuration.tlsConfiguration = tls
        }
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    func get() async throws {
        _ = try await execute(HTTPClientRequest(url: url)).body.collect(upTo: 1 << 20)
    }

    func post() async throws {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(try JSONEncoder().encode(Order.sample))
        let response = try await execute(request).body.collect(upTo: 1 << 20)
        _ = try JSONDecoder().decode(Customer.self, from: Data(response.readableBytesView))
    }

    func download(to file: OutputFile) async throws {
        defer { file.close() }
        for try await chunk in try await execute(HTTPClientRequest(url: url)).body {
            try chunk.withUnsafeReadableBytes { try file.write($0) }
        }
    }

    func upload(from path: String) async throws {
        let file = try InputFile(path: path)
        defer { file.close() }
        var request = HTTPClientRequest(url: url)
        request.method = .PUT
        request.body = .stream(Chunks(file: file), length: .known(Int64(file.size)))
        _ = try await execute(request).body.collect(upTo: 1 << 20)
    }

    func stream(to consumer: SlowConsumer) async throws {
        for try await chunk in try await execute(HTTPClientRequest(url: url)).body {
            let pause = consumer.pause(after: chunk.readableBytes)
            if pause > .zero { try await Task.sleep(for: pause) }
        }
    }

    func shutDown() async throws {
        try await client.shutdown()
    }

    private func execute(_ request: HTTPClientRequest) async throws -> HTTPClientResponse {
        let response = try await client.execute(request, timeout: .minutes(2))
        guard (200..<300).contains(response.status.code) else { throw Failure("the status is \(response.status)") }
        return response
    }
}

/// A file as a sequence of 512 KiB buffers.
private struct Chunks: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let file: InputFile

    func makeAsyncIterator() -> Chunks { self }

    func next() async throws -> ByteBuffer? {
        var buffer = ByteBufferAllocator().buffer(capacity: 512 * 1024)
        let count = try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 512 * 1024) { try file.read(into: $0) }
        return count == 0 ? nil : buffer
    }
}
