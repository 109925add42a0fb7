// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes

extension SessionManager {
    /// Sends a HEAD request for each task of a group that has no ``AnyTransferTask/expectedBytes`` yet, at most eight at a
    /// time, and sets them from `Content-Length`.
    ///
    /// Uploads, tasks that have ended, and requests with a body are skipped, and so are responses without a length or
    /// with a status outside of 200–299: the total of the group is then known later. Errors are not thrown.
    ///
    /// - Parameter group: The group, whose tasks may belong to other managers: the requests are those of this one.
    public nonisolated func requestSizes(of group: TransferGroup) async {
        let open = group.tasks.filter { task in
            task.expectedBytes == nil && task.kind != .upload && task.status.state != .finished
        }
        await withTaskGroup(of: Void.self) { children in
            for (index, task) in open.enumerated() {
                if index >= 8 { await children.next() }
                children.addTask { task.expectedBytes = await self.size(of: task) }
            }
        }
    }

    /// Returns the size of a task's response according to a HEAD request; `nil` if it is unknown.
    private nonisolated func size(of task: AnyTransferTask) async -> Int64? {
        guard var request = task.request, case .none = request.body.content else { return nil }
        request.method = .head
        if request.headers[.acceptEncoding] == nil { request.headers[.acceptEncoding] = "identity" }
        guard let head = try? await data(for: request).head, head.status.kind == .successful else { return nil }
        return head.headers.first(.contentLength).flatMap { Int64($0) }
    }
}
