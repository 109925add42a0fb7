// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

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
    private let base: ResponseBody
    private let state = Lock(State())
    /// Ends when reading ahead does, and with the exchange.
    private let reading: Task<Void, any Error>

    private struct State: Sendable {
        /// The bytes that were received and not read.
        var kept = Data()
        var phase = Phase.ahead

        /// Adds a chunk; returns whether another one is read before the reader asks for it.
        mutating func keep(_ chunk: Data, upTo limit: Int, of url: URL) throws(TransportError) -> Bool {
            // The reader waits for this chunk, or will find it.
            try kept.collect(chunk, upTo: phase == .ahead ? limit : .max, FailureContext(url))
            return phase == .ahead
        }

        mutating func take() -> Data? {
            phase = .read
            defer { kept = Data() }
            return kept.isEmpty ? nil : kept
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

    /// Ends reading ahead: of what the server sends, one more chunk is received until the body is read.
    func stop() { state.withLock { if $0.phase == .ahead { $0.phase = .stopped } } }

    func next() async throws -> Data? {
        if let kept = state.withLock({ $0.take() }) { return kept }
        try await withTaskCancellationHandler {
            try await reading.value
        } onCancel: {
            cancel()
        }
        if let kept = state.withLock({ $0.take() }) { return kept }
        var iterator = base.makeAsyncIterator()
        return try await iterator.next()
    }

    var ending: ResponseEnding? { state.withLock { $0.phase != .ahead && $0.kept.isEmpty } ? base.ending : nil }

    /// Does nothing: the bytes are in memory.
    func willBeWritten(to path: String) async {}

    func cancel() {
        reading.cancel()
        base.cancel()
    }

    func close() async {
        if state.withLock({ $0.phase != .read }) { base.noteDisuse?() }
        reading.cancel()
        await base.close()
        _ = await reading.result
    }
}
