// SPDX-License-Identifier: MIT

import ANCache
import ANHTTP
import HTTPTypes

extension SessionManager {
    /// Requests the sizes of a group's downloads, so that the total of ``TransferGroup/progress`` is known before the
    /// transfers begin.
    ///
    /// For each task without ``AnyTransferTask/expectedBytes``, sends a HEAD request, with `Accept-Encoding: identity`
    /// unless the task's request has that field, and sets `expectedBytes` to the `Content-Length` of the response. At
    /// most eight requests are sent at a time. Uploads, tasks that have ended, requests with a body, and requests of
    /// async functions are skipped.
    ///
    /// If the request has a `Range`, it is the size of the range. A request that fails, has a status outside of 200–299 or no valid `Content-Length` leaves the size unknown; no
    /// error is thrown. If the calling task is cancelled, the sizes that have not arrived stay unknown. Read
    /// ``TransferGroup/progress`` after this function returns: it uses the sizes known at that time.
    ///
    /// - Parameter group: The group. This manager sends the requests, also those for tasks of other managers.
    public nonisolated func requestSizes(of group: TransferGroup) async {
        let open = group.tasks.filter { task in
            task.core != nil && task.expectedBytes == nil && task.kind != .upload && task.status.state != .finished
        }
        await withTaskGroup(of: Void.self) { children in
            for (index, task) in open.enumerated() {
                if index >= 8 { await children.next() }
                children.addTask {
                    guard let size = await self.size(of: task), task.expectedBytes == nil else { return }
                    task.expectedBytes = size
                }
            }
        }
    }

    /// Returns the size of a task's response according to a HEAD request; `nil` if it is unknown.
    private nonisolated func size(of task: AnyTransferTask) async -> Int64? {
        guard var request = task.request, case .none = request.body.content else { return nil }
        request.method = .head
        if request.headers[.acceptEncoding] == nil { request.headers[.acceptEncoding] = "identity" }
        guard let head = try? await data(for: request).head, head.status.kind == .successful else { return nil }
        let ranges = request.headers[values: .range]
        guard !ranges.isEmpty, let length = head.contentLength else { return head.contentLength }
        // A range has no meaning for HEAD, so the length is that of the whole (RFC 9110 §14.2).
        guard ranges.count == 1, let positions = ByteRange(ranges[0])?.positions(in: length) else { return nil }
        return Int64(positions.count)
    }
}
