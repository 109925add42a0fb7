// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Testing

@Suite struct RequestBodyTests {
    @Test(
        arguments: [
            (RequestBody.none, 0, true),
            (.bytes(Data()), 0, true),
            (.bytes(Data([1, 2, 3])), 3, true),
            (.string("ä€"), 5, true),
            (.file("/nonexistent"), nil, true),
            (.stream(Chunks(count: 2)), nil, false),
            (.stream(Chunks(count: 2), length: 8), 8, false),
            (.stream(Chunks(count: 2), length: 8, isReplayable: true), 8, true),
            (.stream(Chunks(count: 2), isReplayable: true), nil, true),
            (.writer { _ in }, nil, false),
            (.writer(length: 9) { _ in }, 9, false),
        ] as [(RequestBody, Int64?, Bool)])
    func `a body has its length and whether it is replayable`(
        body: RequestBody, length: Int64?, isReplayable: Bool
    ) {
        #expect(body.length == length)
        #expect(body.isReplayable == isReplayable)
    }

    @Test(arguments: ["/tmp", "/dev/shm"].filter { FileManager.default.isWritableFile(atPath: $0) })
    func `a regular file is replayable, also in a file system below dev`(directory: String) throws {
        let path = "\(directory)/\(UUID().uuidString)"
        try Data("x".utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(RequestBody.file(path).isReplayable)
        #expect(!RequestBody.file("/dev/null").isReplayable)
    }

    @Test func `a body has a kind with its bytes or its path`() {
        #expect(RequestBody.none.kind == .none)
        #expect(RequestBody.string("ä").kind == .bytes(Data([0xC3, 0xA4])))
        #expect(RequestBody.file("/a/b").kind == .file("/a/b"))
        #expect(RequestBody.stream(Chunks(count: 1)).kind == .stream)
        #expect(RequestBody.writer { _ in }.kind == .stream)
    }

    @Test func `a stream is iterated from the start each time it is written`() async throws {
        let body = RequestBody.stream(Chunks(count: 3), isReplayable: true)
        for _ in 0..<2 {
            let (chunks, error) = await chunks(of: body)
            #expect(chunks == [Data([0, 0, 0, 0]), Data([1, 1, 1, 1]), Data([2, 2, 2, 2])])
            #expect(error == nil)
        }
    }

    @Test func `writing a stream rethrows the error of its sequence`() async throws {
        let (chunks, error) = await chunks(of: .stream(Chunks(count: 1, failure: Chunks.Broken())))
        #expect(chunks == [Data([0, 0, 0, 0])])
        #expect(error is Chunks.Broken)
    }

    @Test func `a writer passes bytes on without copying them`() async throws {
        let bytes = Data(repeating: 7, count: 1 << 20)
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        try await RequestBodyWriter { continuation.yield($0) }.write(bytes)
        continuation.finish()
        for await chunk in chunks { #expect(address(of: chunk) == address(of: bytes)) }
    }

    @Test func `the indices of chunks start at 0`() async throws {
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        let writer = RequestBodyWriter { continuation.yield($0) }
        try await writer.write(Data([1, 2, 3]).dropFirst())
        try await writer.write([1, 2, 3].dropFirst())
        continuation.finish()
        for await chunk in chunks {
            #expect(chunk.startIndex == 0)
            #expect(chunk == Data([2, 3]))
        }
    }

    private func chunks(of body: RequestBody) async -> ([Data], (any Error)?) {
        guard case .writer(_, _, let write) = body.content else { return ([], nil) }
        let (chunks, continuation) = AsyncStream.makeStream(of: Data.self)
        do {
            try await write(RequestBodyWriter { continuation.yield($0) })
            continuation.finish()
            return (await chunks.reduce(into: []) { $0.append($1) }, nil)
        } catch {
            continuation.finish()
            return (await chunks.reduce(into: []) { $0.append($1) }, error)
        }
    }
}

/// Returns the address of the first byte.
private func address(of bytes: Data) -> Int {
    unsafe bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
}

/// Chunks of four bytes: 0 0 0 0, 1 1 1 1, …, optionally followed by an error.
struct Chunks: AsyncSequence, Sendable {
    struct Broken: Error {}

    let count: Int
    var failure: (any Error)?

    func makeAsyncIterator() -> AsyncThrowingStream<[UInt8], any Error>.Iterator {
        AsyncThrowingStream { continuation in
            for index in 0..<count { continuation.yield([UInt8](repeating: UInt8(index), count: 4)) }
            continuation.finish(throwing: failure)
        }.makeAsyncIterator()
    }
}
