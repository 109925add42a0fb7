// SPDX-License-Identifier: MIT

package import ANHTTP
import HTTPTypes

/// A producer that writes a streamed body to its channel, and starts again when the loop rewinds the body.
///
/// It runs in a child task of the task that performs the request, not on the loop, and ends when the exchange is over.
package struct BodyPump: Sendable {
    package let channel: UploadChannel
    private let declaredLength: Int64?
    private let trailers: (@Sendable () throws -> HTTPFields)?
    private let makeReader: @Sendable () throws -> BodyReader

    /// Creates the pump for a request; `nil` if its body is empty or in memory and it has no trailers.
    ///
    /// - Throws: ``TransportError/Reason/requestBody(_:)`` for a file that cannot be opened.
    package init?(for request: Request) throws(TransportError) {
        switch request.body.content {
        case .none where request.trailers == nil, .bytes where request.trailers == nil: return nil
        case .none, .bytes, .file, .stream: self.init(try BodySource(request.body), trailers: request.trailers)
        }
    }

    private init(_ source: BodySource, trailers: (@Sendable () throws -> HTTPFields)?) {
        declaredLength = source.length
        self.trailers = trailers
        // Trailers require chunked transfer coding, which excludes a declared length. See RFC 9112 §7.1.2.
        channel = UploadChannel(length: trailers == nil ? source.length : nil, isReplayable: source.isReplayable)
        makeReader = source.makeReader
    }

    /// Produces bytes until the exchange is over; `tellLoop` notifies the loop that bytes are available.
    package func run(tellLoop: @Sendable () -> Void) async {
        while true {
            channel.begin()
            let order = await produce(tellLoop: tellLoop)
            guard order == .restart else { return }
        }
    }

    private func produce(tellLoop: @Sendable () -> Void) async -> UploadStateMachine<Waiter>.Order {
        var produced: Int64 = 0
        do {
            let reader = try makeReader()
            while let chunk = try await reader.next() {
                produced += Int64(chunk.count)
                if let length = declaredLength, produced > length {
                    return await channel.finish(.failure(.tooLong(declared: length)), tellLoop: tellLoop)
                }
                let order = await channel.write(chunk, tellLoop: tellLoop)
                guard order == .goOn else { return order }
            }
            // A cancelled source may end as if it were complete, or throw; neither is a failure of the source.
            guard !Task.isCancelled else { return .stop }
            if let length = declaredLength, produced < length {
                return await channel.finish(
                    .failure(.tooShort(declared: length, produced: produced)), tellLoop: tellLoop)
            }
            return await channel.finish(.success(try trailers?() ?? [:]), tellLoop: tellLoop)
        } catch  where Task.isCancelled {
            return .stop
        } catch let problem as TransportError.RequestBodyFailure {
            return await channel.finish(.failure(problem), tellLoop: tellLoop)
        } catch {
            return await channel.finish(.failure(.source(error)), tellLoop: tellLoop)
        }
    }
}
