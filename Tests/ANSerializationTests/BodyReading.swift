// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import Testing

/// Returns the chunks of a body.
func chunks(of body: RequestBody) async throws -> [Data] {
    let chunks = Lock<[Data]>([])
    try await body.write(to: RequestBodyWriter { chunk in chunks.withLock { $0.append(chunk) } })
    return chunks.withLock { $0 }
}

@discardableResult
func text(of body: RequestBody) async throws -> String {
    String(decoding: try await chunks(of: body).joined(), as: UTF8.self)
}

/// Expects that the work throws a particular failure of multipart bodies.
func expectFailure(
    _ failure: SerializationError.Failure, sourceLocation: SourceLocation = #_sourceLocation,
    _ work: () async throws -> Void
) async {
    do {
        try await work()
        Issue.record("no error was thrown", sourceLocation: sourceLocation)
    } catch SerializationError.multipart(failure) {
        return
    } catch {
        Issue.record("another error: \(error)", sourceLocation: sourceLocation)
    }
}

/// Calls a closure with the path of a file that exists during the call.
func withFile(named name: String, _ content: Data, _ use: (String) async throws -> Void) async throws {
    let directory = "/tmp/ANSerializationTests-\(UInt64.random(in: .min ... .max))"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let path = directory + "/" + name
    try content.write(to: URL(filePath: path))
    try await use(path)
}

/// A sequence that counts the chunks read from it, and optionally fails at its end.
struct Chunks: AsyncSequence, Sendable {
    struct Failing: Error {}

    private let chunks: [Data]
    private let isFailing: Bool
    private let count = Lock(0)

    init(_ chunks: [Data] = [], failing: Bool = false) {
        self.chunks = chunks
        isFailing = failing
    }

    init(_ chunks: [String], failing: Bool = false) {
        self.init(chunks.map { Data($0.utf8) }, failing: failing)
    }

    /// The number of chunks read so far.
    var taken: Int { count.withLock { $0 } }

    func makeAsyncIterator() -> Iterator { Iterator(sequence: self) }

    struct Iterator: AsyncIteratorProtocol {
        let sequence: Chunks
        var next = 0

        mutating func next() async throws -> Data? {
            guard next < sequence.chunks.count else {
                if sequence.isFailing { throw Failing() }
                return nil
            }
            defer { next += 1 }
            sequence.count.withLock { $0 += 1 }
            return sequence.chunks[next]
        }
    }
}
