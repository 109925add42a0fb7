// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension Pipeline {
    /// Prepares a response for a closure of the program that decides whether it is returned: a streamed body is received
    /// meanwhile, up to the limit for collected ones. Otherwise the exchange would keep its connection until the body is
    /// read, and a request of the closure to the same server might wait for that.
    @inline(never)
    func receiveDuringDecision(_ response: inout OpenResponse, to request: Request, _ call: Call) {
        // The others are received without backpressure.
        guard call.delivery == .streamed, !response.body.isWhole else { return }
        let limit = (request.options ?? options.value).maximumBodySize
        response.body = response.body.reading(ReadAheadBodySource(response.body, upTo: limit, of: response.head.url))
    }
}

/// A source that reads a body from its creation on until it is read itself, so that the server need not wait for the
/// reader. If more bytes than a limit arrive until then, the exchange ends, and they are followed by an error.
private final class ReadAheadBodySource: FileBodySource {
    private let base: ResponseBody
    private let state = Lock(State())
    /// Ends when the source is read, and with the exchange.
    private let reading: Task<Void, any Error>

    private struct State: Sendable {
        /// The bytes that were received and not read.
        var kept = Data()
        var isRead = false

        /// Adds a chunk; returns whether another one is read before the reader asks for it.
        mutating func keep(_ chunk: Data, upTo limit: Int, of url: URL) throws(TransportError) -> Bool {
            // The reader waits for this chunk.
            try kept.collect(chunk, upTo: isRead ? .max : limit, FailureContext(url))
            return !isRead
        }

        mutating func take() -> Data? {
            isRead = true
            defer { kept = Data() }
            return kept.isEmpty ? nil : kept
        }
    }

    init(_ base: ResponseBody, upTo limit: Int, of url: URL) {
        self.base = base
        reading = Task { [state] in
            for try await chunk in base {
                do {
                    guard try state.withLock({ try $0.keep(chunk, upTo: limit, of: url) }) else { return }
                } catch {
                    await base.close()
                    throw error
                }
            }
        }
    }

    func next() async throws -> Data? {
        if let kept = state.withLock({ $0.take() }) { return kept }
        try await withTaskCancellationHandler {
            try await reading.value
        } onCancel: {
            base.cancel()
        }
        if let kept = state.withLock({ $0.take() }) { return kept }
        var iterator = base.makeAsyncIterator()
        return try await iterator.next()
    }

    var ending: ResponseEnding? { state.withLock { $0.isRead && $0.kept.isEmpty } ? base.ending : nil }

    /// Does nothing: the bytes are in memory.
    func willBeWritten(to path: String) async {}

    func cancel() { base.cancel() }

    func close() async { await base.close() }
}
