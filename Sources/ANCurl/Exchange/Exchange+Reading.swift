// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

extension Exchange: WholeBodySource {
    var isWhole: Bool { state.withLock { $0.machine.isOver && $0.failure == nil } }

    /// Receives the rest of a body that is discarded, unless it is long, so that the connection can be used again.
    func receiveRest() async {
        // As a collected body, which is received without the session's budget: a full one would pause it for good.
        let mustResume = state.withLock { state in
            state.share = nil
            return state.machine.collect(upTo: Self.patience)
        }
        if mustResume { post(.resumeReceiving(self)) }
        await waitToRead(.response)
    }

    func next() async throws -> Data? {
        guard let decoder = try decoder() else { return try await nextReceived() }
        return try await next(by: decoder)
    }

    /// Returns the next decoded bytes.
    ///
    /// Decoding does not wait, and may take long after the exchange is over, when cancelling it has no effect.
    private func next(by decoder: ContentDecoder) async throws -> Data? {
        do {
            while true {
                try Task.checkCancellation()
                if let chunk = try decoder.next() {
                    guard chunk.isEmpty else { return chunk }
                    await Task.yield()
                    continue
                }
                guard let received = try await nextReceived() else {
                    try decoder.finish()
                    state.withLock { $0.isEndRead = true }
                    return nil
                }
                decoder.push(received)
            }
        } catch let failure as ContentDecoder.Failure {
            throw decodingError(failure)
        }
    }

    func collect(upTo limit: Int) async throws -> Data {
        if let decoder = try decoder() { return try await collect(by: decoder, upTo: limit) }
        while true {
            let (body, mustResume) = try state.withLock { state throws in
                let body = try state.takeAll(limit: limit, of: request.url)
                state.share = nil
                return (body, body == nil && state.machine.collect(upTo: limit))
            }
            if let body { return body }
            if mustResume { post(.resumeReceiving(self)) }
            await waitToRead(.end)
        }
    }

    /// Decodes a whole body. It does not run on the reader's actor, which decoding could block for a long time.
    @concurrent
    private func collect(by decoder: ContentDecoder, upTo limit: Int) async throws -> Data {
        var body = Data()
        while let chunk = try await next(by: decoder) {
            try body.collect(chunk, upTo: limit, decodingContext())
        }
        return body
    }

    /// Returns the next bytes as received, before content decoding; `nil` at the end.
    private func nextReceived() async throws -> Data? {
        while true {
            switch try state.withLock({ state throws in try state.takeChunk() }) {
            case .bytes(let chunk, let mustResume):
                if mustResume { post(.resumeReceiving(self)) }
                return chunk
            case .end:
                return nil
            case .notYet:
                await waitToRead(.bytes)
            }
        }
    }

    /// Returns the decoder of the body; `nil` if the reader receives the bytes undecoded.
    private func decoder() throws -> ContentDecoder? {
        do throws(ContentDecoder.Failure) {
            return try state.withLock { state throws(ContentDecoder.Failure) in
                switch state.decoding {
                case .none: return nil
                case .by(let decoder): return decoder
                case .undecided(let codings):
                    let decoder = try ContentDecoder(contentEncoding: codings, limit: options.decompressionLimit)
                    state.decoding = decoder.map { .by($0) } ?? .none
                    return decoder
                }
            }
        } catch {
            throw decodingError(error)
        }
    }

    private func decodingError(_ failure: ContentDecoder.Failure) -> TransportError {
        var context = decodingContext()
        switch failure {
        case .tooLarge(let limit): return TransportError(.responseTooLarge(limit), context: context)
        case .system(let error): return TransportError(.internalInconsistency(error.description), context: context)
        default:
            context.message = failure.reason
            if case .truncated = failure { context.endsWithinCoding = true }
            return TransportError(.invalidContentEncoding, context: context)
        }
    }

    private func decodingContext() -> FailureContext {
        var context = FailureContext(request.url)
        context.address = state.withLock { $0.address }
        return context
    }

    /// Waits for an event. The reader may be a child of the task that performs the request; cancelling it cancels the
    /// exchange.
    private func waitToRead(_ interest: ExchangeStateMachine<Waiter>.Interest) async {
        await withTaskCancellationHandler {
            await wait(for: interest)
        } onCancel: {
            cancel()
        }
    }

    var ending: ResponseEnding? {
        state.withLock { $0.isEndRead ? $0.ending : nil }
    }
}

extension ContentDecoder.Failure {
    /// The description of the reason.
    fileprivate var reason: String {
        switch self {
        case .unknownCoding(let name): "unknown content coding \(name.prefix(40))"
        case .tooManyCodings: "more than \(ContentDecoder.maximumCodingCount) content codings"
        case .malformed(let coding): "malformed \(coding.rawValue)"
        case .truncated(let coding): "truncated \(coding.rawValue)"
        case .empty(let coding): "\(coding.rawValue) with too little content"
        case .tooLarge, .system: ""
        }
    }
}
