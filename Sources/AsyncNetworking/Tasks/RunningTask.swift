// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP

/// A running task and its request.
struct RunningTask: Sendable {
    let core: TransferCore
    let request: Request

    var erased: AnyTransferTask { AnyTransferTask(core) }

    /// Returns the request with a body that is read only while the task may run.
    ///
    /// A body of at most one chunk is in memory as a whole and is passed unchanged.
    @inline(never)
    func gatedRequest(_ change: (inout Request) -> Void = { _ in }) throws -> Request {
        var request = request
        change(&request)
        if let length = request.body.length, length <= BodySource.chunkSize { return request }
        do throws(TransportError) {
            let source = try BodySource(request.body)
            request.body = .writer(length: source.length, isReplayable: source.isReplayable) { [core] writer in
                try await core.waitUntilRunning()
                try await source.produce(
                    RequestBodyWriter { chunk in
                        try await writer.write(chunk)
                        try await core.waitUntilRunning()
                    })
            }
        } catch {
            throw SessionError.transport(error)
        }
        return request
    }
}
