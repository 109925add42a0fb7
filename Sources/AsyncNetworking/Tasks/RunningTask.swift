// SPDX-License-Identifier: MIT

import ANHTTP

/// A running task and its request.
struct RunningTask: Sendable {
    let core: TransferCore
    let request: Request

    var erased: AnyTransferTask { AnyTransferTask(core) }

    /// Returns the request with a body that is read only while the task may run.
    ///
    /// A body of at most one chunk is passed unchanged.
    @inline(never)
    func gatedRequest(_ change: (inout Request) -> Void = { _ in }) -> Request {
        var request = request
        change(&request)
        if let length = request.body.length, length <= RequestBody.chunkSize { return request }
        request.body.gate = { [core] in try await core.waitUntilRunning() }
        return request
    }
}
