// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

extension TaskDriver {
    /// Returns the URL of a temporary file that does not exist yet.
    static func makeTemporaryURL() -> URL {
        FileManager.default.temporaryDirectory.appending(
            path: "CFNetworkDownload_\(UInt64.random(in: .min ... .max)).tmp")
    }

    /// Creates the core download, which resumes an earlier one if there is resume data.
    func makeDownload(
        _ session: SessionManager, _ request: Request, _ resumeData: ResumeData?, _ priority: RequestPriority
    ) -> DownloadTask {
        let temporary = Self.makeTemporaryURL()
        let options = DownloadOptions().with {
            $0.resumeData = resumeData
            $0.readRejected = { body, core in
                try await body.write(to: temporary.path, mode: 0o600) { _ in try await core.waitUntilRunning() }
                self.change { $0.hasWrittenRejection = true }
            }
        }
        // There, its bytes are for the user only.
        let destination = DownloadDestination.chosen(temporaryDirectory: temporary.deletingLastPathComponent().path) {
            $0.path
        }
        let task = session.makeDownloadTask(for: .success(request), to: destination, options) { file in
            await self.finish(self.received(file, at: temporary))
        }
        task.priority = priority
        task.core.observe { [weak self] event in self?.note(event) }
        return task
    }

    /// Moves the downloaded file to its destination. The body of a response that validation rejected is moved, too.
    private func received(
        _ file: Result<DownloadedFile, any Error>, at temporary: URL
    ) async -> Result<Void, any Error> {
        do {
            switch file {
            case .success(let file):
                do {
                    try FileManager.default.moveItem(atPath: file.path, toPath: temporary.path)
                } catch {
                    FileLocation.remove(file.path)
                    throw error
                }
                // The server answers 416 if the file already had all bytes (RFC 9110 §15.5.17).
                change { state in
                    guard state.head?.status == .rangeNotSatisfiable else { return }
                    state.head?.status = .partialContent
                    state.response = nil
                }
            case .failure(let error):
                // It may be the rejection of another response, such as that of a request for a token.
                guard change({ $0.hasWrittenRejection }), let error = error as? SessionError else {
                    FileLocation.remove(temporary.path)
                    throw error
                }
                change { $0.resumeData = error.resumeData }
            }
            await moveDownload(from: temporary)
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    private func note(_ event: TaskEvent) {
        switch event {
        case .response(let head):
            change { $0.receive(head) }
        case .continued(let offset, let total):
            change { state in
                state.counts.received = offset
                state.counts.expectedToReceive = total ?? NSURLSessionTransferSizeUnknown
            }
            sessionQueue.async { [self] in
                guard let task = task as? URLSessionDownloadTask else { return }
                tell(\.downloadProgress, \.downloadProgress, offset, of: total)
                guard let observer else { return }
                observer.urlSession(
                    session(of: observer), downloadTask: task, didResumeAtOffset: offset,
                    expectedTotalBytes: total ?? NSURLSessionTransferSizeUnknown)
            }
        case .uploadProgress, .exchange(_, .started): noteSending(event)
        case .downloadProgress(let progress): didReceive(progress)
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
        sessionQueue.async { [self] in didWrite(written, progress.completedBytes, of: expected) }
    }

    /// Reports that a part of a download has been written; called on the manager's own queue.
    func didWrite(_ count: Int64, _ total: Int64, of expected: Int64) {
        tell(\.downloadProgress, \.downloadProgress, total, of: expected < 0 ? nil : expected)
        guard let observer, let task = task as? URLSessionDownloadTask else { return }
        observer.urlSession(
            session(of: observer), downloadTask: task, didWriteData: count, totalBytesWritten: total,
            totalBytesExpectedToWrite: expected)
    }
}
