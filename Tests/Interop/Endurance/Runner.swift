// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials
import Synchronization

/// Performs exchanges until enough are counted, and compares each body with what was sent.
final class Runner: Sendable {
    private let manager: SessionManager
    private let server: URL
    private let file: URL
    private let tally = Mutex(Tally())

    /// The numbers of exchanges by outcome.
    struct Tally {
        var started = 0
        var right = 0
        var abandoned = 0
        /// The exchanges that failed, by the description of the error.
        var failures: [String: Int] = [:]
        /// The exchanges with wrong bytes, by what was wrong.
        var wrong: [String: Int] = [:]
    }

    init(_ manager: SessionManager, at server: URL, file: URL) {
        self.manager = manager
        self.server = server
        self.file = file
    }

    func run(count: Int, workers: Int, seed: UInt64, abandoning percentage: Int) async -> Tally {
        await withTaskGroup { group in
            for worker in 0..<workers {
                group.addTask { [self] in
                    var generator = SeededGenerator(seed: seed &+ UInt64(worker) &* 0x1_0000_0001)
                    while start(upTo: count) { await perform(Mix(abandoning: percentage, using: &generator)) }
                }
            }
        }
        return tally.withLock { $0 }
    }

    private func start(upTo count: Int) -> Bool {
        tally.withLock { tally in
            guard tally.started < count else { return false }
            tally.started += 1
            return true
        }
    }

    private func perform(_ mix: Mix) async {
        do {
            let problem: String?
            switch mix.abandonment {
            case nil: problem = try await exchange(mix)
            case .cancel:
                let task = Task { try await exchange(mix) }
                try? await Task.sleep(for: mix.patience)
                task.cancel()
                problem = try await task.value
            case .timeout, .leave: problem = try await exchange(mix)
            }
            tally.withLock { tally in
                if let problem { tally.wrong[problem, default: 0] += 1 } else { tally.right += 1 }
            }
        } catch {
            let isExpected =
                mix.abandonment != nil && (error is CancellationError || (error as? SessionError)?.isTimeout == true)
            tally.withLock { tally in
                if isExpected {
                    tally.abandoned += 1
                } else {
                    tally.failures["\(mix.upload): \(error)", default: 0] += 1
                }
            }
        }
    }

    /// Performs an exchange; returns what was wrong with it, or `nil`.
    private func exchange(_ mix: Mix) async throws -> String? {
        let request = try request(for: mix)
        let expected = Pattern.bytes[mix.offset..<mix.offset + mix.size]
        return try await manager.withResponse(for: request) { head, body in
            guard head.status == 200 else { return "status \(head.status.code)" }
            if mix.upload != .none, head.received != "\(mix.sentSize) true" {
                return "\(mix.upload) of \(mix.sentSize): \(head.received ?? "")"
            }
            var received = Data()
            switch mix.reading {
            case .collected: received = try await body.collect(upTo: 1 << 20)
            case .streamed, .stalled:
                for try await chunk in body {
                    if mix.abandonment == .leave { throw CancellationError() }
                    if mix.reading == .stalled, received.isEmpty { try await Task.sleep(for: mix.patience) }
                    received.append(chunk)
                }
            }
            return received == expected ? nil : "body of \(mix.size) after \(mix.upload): \(received.count) bytes"
        }
    }

    private func request(for mix: Mix) throws -> Request {
        let url = server.appending(path: "pattern/\(mix.offset)/\(mix.size)/\(mix.uploadOffset)")
        let bytes = Pattern.bytes[mix.uploadOffset..<mix.uploadOffset + mix.uploadSize]
        var request = Request(method: mix.upload == .none ? .get : .post, url: url)
        request.body =
            switch mix.upload {
            case .none: .none
            case .bytes: .bytes(Data(bytes))
            case .file: .file(file.path)
            case .stream: .stream(Chunks(bytes: bytes), length: Int64(bytes.count))
            case .streamOfUnknownLength: .stream(Chunks(bytes: bytes))
            case .writer: .writer(length: Int64(bytes.count)) { try await Self.write(bytes, to: $0) }
            case .writerOfUnknownLength: .writer { try await Self.write(bytes, to: $0) }
            }
        if mix.abandonment == .timeout { request.timeout = mix.patience }
        return request
    }

    private static func write(_ bytes: Data, to writer: RequestBodyWriter) async throws {
        for try await chunk in Chunks(bytes: bytes) { try await writer.write(chunk) }
    }
}

extension ResponseHead {
    /// What the server says of the request's body: the number of bytes, and whether they are right.
    fileprivate var received: String? {
        HTTPField.Name("x-received").flatMap { headers[$0] }
    }
}

extension Mix {
    /// The size of the request's body.
    var sentSize: Int { upload == .file ? Pattern.bytes.count : uploadSize }
}

/// Bytes in chunks, some of which come late.
struct Chunks: AsyncSequence, Sendable {
    let bytes: Data

    func makeAsyncIterator() -> Iterator { Iterator(rest: bytes) }

    struct Iterator: AsyncIteratorProtocol {
        var rest: Data
        var count = 0

        mutating func next() async throws -> Data? {
            guard !rest.isEmpty else { return nil }
            count += 1
            if count.isMultiple(of: 3) { try await Task.sleep(for: .microseconds(200)) }
            defer { rest = rest.dropFirst(1000 * count) }
            return Data(rest.prefix(1000 * count))
        }
    }
}
