// SPDX-License-Identifier: MIT

import AsyncNetworking

extension TaskDriver {
    /// A place for a file that has none yet.
    static func makeTemporaryPlace() -> URL {
        FileManager.default.temporaryDirectory.appending(
            path: "CFNetworkDownload_\(UInt64.random(in: .min ... .max)).tmp")
    }

    /// Makes the core's download, which goes on where an earlier one was.
    func makeDownload(_ session: SessionManager, _ request: Request, _ resumeData: ResumeData?) -> TaskWork {
        let temporary = Self.makeTemporaryPlace()
        let options = DownloadOptions().with { $0.resumeData = resumeData }
        let task = session.makeDownloadTask(for: request, to: .file(temporary.path), options: options)
        task.core.observeEvents { [weak self] event in self?.note(event) }
        task.core.observeDownloadProgress { [weak self] progress in self?.didReceive(progress) }
        return TaskWork(task) { [weak self] file in
            guard let self else { throw CancellationError() }
            try keepErrorPage(file, at: temporary)
            return TaskOutcome(file: await onSessionQueue { [self] in Handover(moveDownload(from: temporary)) })
        }
    }

    /// Makes a file of the page that came in place of what was asked for: it belongs where the file would have been.
    private func keepErrorPage(_ file: Result<DownloadedFile, any Error>, at place: URL) throws {
        guard case .failure(let error) = file else { return }
        guard let rejection = (error as? SessionError)?.rejection else { throw error }
        try rejection.body.write(to: place)
    }

    private func note(_ event: TaskEvent) {
        switch event {
        case .request(let request): change { $0.current = request }
        case .metrics(let metrics): change { $0.metrics.append(metrics) }
        case .response(let head):
            change { state in
                state.head = head
                state.response = nil
                state.counts.expectedToReceive = head.expectedContentLength
            }
        case .continued(let offset, let total):
            change { state in
                state.counts.received = offset
                state.counts.expectedToReceive = total ?? NSURLSessionTransferSizeUnknown
            }
            manager.sessionQueue.async { [self] in
                guard let task = task as? URLSessionDownloadTask else { return }
                tell(\.downloadProgress, \.downloadProgress, offset, of: total)
                guard manager.isObserved else { return }
                manager.urlSession(
                    session, downloadTask: task, didResumeAtOffset: offset,
                    expectedTotalBytes: total ?? NSURLSessionTransferSizeUnknown)
            }
        default: break
        }
    }

    private func didReceive(_ progress: TransferProgress) {
        let expected = progress.totalBytes ?? NSURLSessionTransferSizeUnknown
        let written = change { state in
            let written = progress.completedBytes - state.counts.received
            state.counts.received = progress.completedBytes
            state.counts.expectedToReceive = expected
            return written
        }
        guard written > 0 else { return }
        manager.sessionQueue.async { [self] in didWrite(written, progress.completedBytes, of: expected) }
    }

    /// Tells that a piece of a download was written; on the manager's queue.
    func didWrite(_ count: Int64, _ total: Int64, of expected: Int64) {
        tell(\.downloadProgress, \.downloadProgress, total, of: expected < 0 ? nil : expected)
        guard manager.isObserved, let task = task as? URLSessionDownloadTask else { return }
        manager.urlSession(
            session, downloadTask: task, didWriteData: count, totalBytesWritten: total,
            totalBytesExpectedToWrite: expected)
    }
}
