// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials
import HTTPTypes

/// A producer that writes a streamed body to its channel, and starts again when the loop rewinds the body.
///
/// It runs in a child task of the task that performs the request, not on the loop, and ends when the exchange is over.
package final class BodyPump: Sendable {
    package let channel: UploadChannel
    private let declaredLength: Int64?
    private let trailers: (@Sendable () throws -> HTTPFields)?
    private let source: BodyWriting
    private let gate: (@Sendable () async throws -> Void)?

    /// Creates the pump for a request; `nil` if its body is empty or in memory and it has no trailers.
    ///
    /// - Throws: The errors of `BodySource.init(_:chunkSize:)`.
    package init?(for request: borrowing Request, memory: MemoryBudget? = nil) throws(TransportError) {
        switch request.body.content {
        case .none where request.trailers == nil: return nil
        case .bytes where request.trailers == nil && request.body.gate == nil: return nil
        case .none, .bytes, .file, .writer:
            let source = try BodySource(request.body, chunkSize: memory?.chunk ?? RequestBody.chunkSize)
            declaredLength = source.length
            trailers = request.trailers
            // Trailers require chunked transfer coding, which excludes a declared length. See RFC 9112 §7.1.2.
            channel = UploadChannel(
                length: trailers == nil ? source.length : nil, isReplayable: source.isReplayable, memory: memory)
            self.source = source.produce
            gate = request.body.gate
        }
    }

    /// Produces bytes until the exchange is over.
    ///
    /// - Parameters:
    ///   - tellLoop: Notifies the loop that bytes are available, or that there are no more.
    ///   - cancel: Cancels the exchange. Called before the failure of a source whose gate has thrown, which it does
    ///     only if the task that performs the request is cancelled.
    package func run(
        tellLoop: @escaping @Sendable () -> Void, cancel: @escaping @Sendable () -> Void = {}
    ) async {
        let gate = gate.map { gate in
            { @Sendable in
                do {
                    try await gate()
                } catch {
                    cancel()
                    throw error
                }
            }
        }
        var order = await channel.waitForDemand()
        while order != .stop {
            order = await produce(in: channel.begin(), behind: gate, tellLoop: tellLoop)
        }
    }

    /// Produces the body once, and returns the order that ended it.
    private func produce(
        in number: Int, behind gate: (@Sendable () async throws -> Void)?, tellLoop: @escaping @Sendable () -> Void
    ) async -> UploadStateMachine<Waiter>.Order {
        let pass = Lock(Pass(number: number))
        let result: Result<HTTPFields, TransportError.RequestBodyFailure>
        do {
            try await gate?()
            let writer = RequestBodyWriter { [self] chunk in try await write(chunk, in: pass, tellLoop: tellLoop) }
            try await source(writer.gated(by: gate))
            let failure = pass.withLock { $0.failure(ofLength: declaredLength) }
            result = try failure.map { .failure($0) } ?? .success(trailers?().checkedAsTrailers() ?? [:])
        } catch {
            let failure = pass.withLock(\.failure)
            result = .failure(failure ?? error as? TransportError.RequestBodyFailure ?? .source(error))
        }
        let order = pass.withLock(\.order)
        guard order == .goOn else { return order }
        // A cancelled source may end as if it were complete, or throw; neither is a failure of the source.
        guard !Task.isCancelled else { return .stop }
        return await channel.finish(result, tellLoop: tellLoop)
    }

    /// Writes a chunk to the channel. Throws if the source must end; it may ignore that.
    private func write(_ chunk: Data, in pass: Lock<Pass>, tellLoop: () -> Void) async throws {
        let number = try pass.withLock { pass throws in
            try pass.note(chunk.count, declaredLength: declaredLength)
            return pass.number
        }
        let order = await channel.write(chunk, in: number, tellLoop: tellLoop)
        pass.set(\.order, to: order)
        guard order == .goOn else { throw CancellationError() }
    }

    /// The state of producing the body once.
    private struct Pass {
        let number: Int
        var produced: Int64 = 0
        /// The order of the channel; no longer `.goOn` if the exchange is over or the body must be produced again.
        var order = UploadStateMachine<Waiter>.Order.goOn
        var failure: TransportError.RequestBodyFailure?

        /// Notes that the source has written bytes. Throws if it must end.
        mutating func note(_ count: Int, declaredLength: Int64?) throws {
            guard order == .goOn else { throw CancellationError() }
            produced += Int64(count)
            guard let length = declaredLength, produced > length else { return }
            let failure = TransportError.RequestBodyFailure.tooLong(declared: length)
            self.failure = failure
            throw failure
        }

        /// Returns the failure of a complete body.
        func failure(ofLength length: Int64?) -> TransportError.RequestBodyFailure? {
            if let failure { return failure }
            guard let length, produced < length else { return nil }
            return .tooShort(declared: length, produced: produced)
        }
    }
}

/// The producer of a request's body, in chunks of a maximum size or as the program's own code yields them.
struct BodySource: Sendable {
    /// The length in bytes; `nil` if it is unknown.
    let length: Int64?
    /// Whether the body can be produced a second time.
    let isReplayable: Bool
    /// Writes the whole body.
    let produce: BodyWriting

    /// Creates the source of a body. The size of a file is read at this point.
    ///
    /// - Throws: ``TransportError/Reason/requestBody(_:)`` for a file that cannot be opened;
    ///   ``TransportError/Reason/invalidRequest(_:)`` for a negative length.
    init(_ body: RequestBody, chunkSize: Int) throws(TransportError) {
        switch body.content {
        case .none:
            self.init(length: 0) { _ in }
        case .bytes(let data):
            self.init(length: Int64(data.count)) { writer in
                var rest = data
                while !rest.isEmpty {
                    try await writer.write(rest.prefix(chunkSize))
                    rest = rest.dropFirst(chunkSize)
                }
            }
        case .file(let path):
            switch try FileLength.ofBody(path) {
            case .known(let size):
                self.init(length: size) { writer in
                    let file = try RegularFile.open(path, TransportError.RequestBodyFailure.file)
                    while let chunk = try file.nextChunk(chunkSize, of: path) { try await writer.write(chunk) }
                }
            case .generated, .stream:
                self.init(length: nil, isReplayable: body.isReplayable) { writer in
                    do {
                        try await UnsizedFile.forEachChunk(of: path, chunkSize) { chunk in
                            try await writer.write(Data(chunk))
                        }
                    } catch let error as SystemError {
                        throw TransportError.RequestBodyFailure.file(path: path, reason: error.description)
                    }
                }
            }
        case .writer(let length, let isReplayable, let write):
            try body.checkLength()
            self.init(length: length, isReplayable: isReplayable, produce: write)
        }
    }

    private init(
        length: Int64?, isReplayable: Bool = true, produce: @escaping BodyWriting
    ) {
        self.length = length
        self.isReplayable = isReplayable
        self.produce = produce
    }
}

extension FileLength {
    fileprivate static func ofBody(_ path: String) throws(TransportError) -> FileLength {
        do throws(SystemError) {
            let length = try FileLength(ofFileAt: path)
            // Checks that it can be read.
            if case .known = length { _ = try RegularFile(path: path) }
            return length
        } catch {
            throw TransportError(.requestBody(.file(path: path, reason: error.description)))
        }
    }
}

extension RegularFile {
    /// Returns the next bytes of the body; `nil` at the end. The pump detects a premature end by the length.
    fileprivate func nextChunk(_ size: Int, of path: String) throws(TransportError.RequestBodyFailure) -> Data? {
        var chunk = Data(count: Int(min(remaining, Int64(size))))
        do throws(SystemError) {
            var bytes = chunk.mutableBytes
            let count = try read(into: &bytes)
            chunk.removeLast(chunk.count - count)
            return count == 0 ? nil : chunk
        } catch {
            throw .file(path: path, reason: error.description)
        }
    }
}
