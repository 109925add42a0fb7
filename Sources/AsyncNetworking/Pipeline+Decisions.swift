// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import Synchronization

extension Pipeline {
    /// Prepares a response for a closure of the program that decides whether it is returned: a streamed body is received
    /// meanwhile, up to the limit for collected ones. Otherwise the exchange would keep its connection until the body is
    /// read, and a request of the closure to the same server might wait for that.
    ///
    /// - Returns: The source of the body, which reads ahead until it is stopped; `nil` if that is not needed.
    @inline(never)
    func readAhead(_ response: inout OpenResponse, to request: Request, _ call: inout Call) -> ReadAheadBodySource? {
        // The others are received without backpressure.
        guard call.delivery == .streamed, !response.body.isWhole else { return nil }
        let limit = (request.options ?? options.value).maximumBodySize
        let source = ReadAheadBodySource(response.body, upTo: limit, of: response.head.url)
        response.body = response.body.reading(source)
        call.exchanges.own(response.body)
        return source
    }
}

/// A source that reads a body from its creation on, so that the server need not wait for the reader, until it is stopped
/// or read itself. If more bytes than a limit arrive until then, the exchange ends, and they are followed by an error.
final class ReadAheadBodySource: FileBodySource {
    let base: ResponseBody
    private let kept: Kept
    /// Whether the reader has taken all that was kept, and reads the rest itself.
    private let isDrained = Atomic(false)
    /// Ends when reading ahead does, and with the exchange.
    private let reading: Task<Void, any Error>

    /// The bytes that were received and not read.
    private actor Kept {
        private var bytes = Data()
        private var phase = Phase.ahead
        private let limit: Int
        private let url: URL

        init(upTo limit: Int, of url: URL) {
            (self.limit, self.url) = (limit, url)
        }

        var isRead: Bool { phase == .read }

        /// Adds a chunk; returns whether another one is read before the reader asks for it.
        func add(_ chunk: Data) throws(TransportError) -> Bool {
            // The reader waits for this chunk, or will find it.
            try bytes.collect(chunk, upTo: phase == .ahead ? limit : .max, FailureContext(url))
            return phase == .ahead
        }

        func stop() { if phase == .ahead { phase = .stopped } }

        func take() -> Data? {
            phase = .read
            defer { bytes = Data() }
            return bytes.isEmpty ? nil : bytes
        }
    }

    private enum Phase {
        /// All that arrives is received.
        case ahead
        /// The bytes that were received are kept for a reader.
        case stopped
        /// The reader has asked for the body.
        case read
    }

    init(_ base: ResponseBody, upTo limit: Int, of url: URL) {
        self.base = base
        let kept = Kept(upTo: limit, of: url)
        self.kept = kept
        reading = Task {
            for try await chunk in base {
                do {
                    guard try await kept.add(chunk) else { return }
                } catch {
                    await base.close()
                    throw error
                }
            }
        }
    }

    /// Ends reading ahead: of what the server sends, one more chunk is received until the body is read.
    func stop() async { await kept.stop() }

    func next() async throws -> Data? {
        if let chunk = await kept.take() { return chunk }
        try await withTaskCancellationHandler {
            try await reading.value
        } onCancel: {
            cancel()
        }
        if let chunk = await kept.take() { return chunk }
        isDrained.store(true, ordering: .releasing)
        return try await base.next()
    }

    var ending: ResponseEnding? { isDrained.load(ordering: .acquiring) ? base.ending : nil }

    /// Does nothing: the bytes are in memory.
    func willBeWritten(to path: String) async {}

    func cancel() {
        reading.cancel()
        base.cancel()
    }

    func close() async {
        if await !kept.isRead { base.noteDisuse?() }
        reading.cancel()
        await base.close()
        _ = await reading.result
    }
}
