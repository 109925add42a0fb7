// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

/// A response that is read outside of the closure that ``SessionManager/withResponse(for:validating:reporting:_:)``
/// lends it to.
///
/// At most one chunk is read ahead. The exchange ends with this object.
final class ResponseParts: Sendable {
    private let parts: Handoff<Part>
    /// The task that performs the exchange. It ends with the response, or when this object is released.
    private let task: Task<Void, Never>

    /// A part of a response.
    enum Part: Sendable {
        case head(ResponseHead)
        case chunk(Data)
    }

    /// Starts a request.
    ///
    /// - Parameters:
    ///   - request: The request to send.
    ///   - session: The session that performs it.
    ///   - validate: Throws for a response that is not accepted.
    init(
        _ request: Request, on session: SessionManager,
        validating validate: @escaping @Sendable (ResponseHead, ResponseBody) async throws -> Void
    ) {
        let parts = Handoff<Part>()
        self.parts = parts
        task = Task {
            do {
                try await session.withResponse(for: request) { head, body in
                    try await validate(head, body)
                    try await parts.send(.head(head))
                    for try await chunk in body { try await parts.send(.chunk(chunk)) }
                }
                parts.finish()
            } catch {
                parts.finish(throwing: error)
            }
        }
    }

    deinit {
        task.cancel()
    }

    /// Returns the next part: first the head, then the chunks of the body; `nil` at the end.
    ///
    /// - Throws: The error of the request. If the calling task is cancelled, the exchange is, too, and has ended when
    ///   this function throws.
    func next() async throws -> Part? {
        try await withTaskCancellationHandler {
            try await parts.receive()
        } onCancel: {
            task.cancel()
        }
    }
}
