// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

extension Fetcher {
    /// Uploads the file of a job, resumably, and prints the response.
    ///
    /// After a failure the server keeps what it has received, and a later run can resume the upload.
    func upload(
        _ job: FetchJob, after previous: OneShotEvent?, _ narrator: Narrator, _ watcher: ExchangeWatcher
    ) async throws {
        let serializer = DataResponseSerializer().unvalidated
        try await session.withUpload(job.request, options: .durable, as: serializer) { task in
            async let told: Void = tell(task.events, of: job.name, narrator, watcher)
            async let shown: Void = show(task.progress, of: job)
            let result = await Result { try await task.value }
            await told
            await shown
            board.end(job.index)
            let response = try result.get()
            if output.failsOnStatus, response.statusCode >= 400 { throw StatusError(head: response.head) }
            await previous?.wait()
            try await print(ResponseBody(response.value), of: response.head, of: job)
        }
    }
}
