// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The core task of a task.
enum TaskWork: Sendable {
    /// A core task that collects the response in memory.
    case collection(TransferTask<Void>)
    /// A core task that writes the response to a file.
    case download(DownloadTask)

    /// The core task, to resume, suspend or cancel.
    var transfer: TransferCore {
        switch self {
        case .collection(let task): task.core
        case .download(let task): task.core
        }
    }

    /// Cancels the core task and returns the resume data; `nil` if the task is not a resumable download.
    func interrupt() async -> ResumeData? {
        switch self {
        case .collection(let task):
            task.cancel()
            return nil
        case .download(let task): return await task.core.cancelProducingResumeData()
        }
    }
}

extension ResumeData {
    /// The resume data encoded as Foundation has it: opaque bytes.
    var archived: Data? { try? JSONEncoder().encode(self) }

    /// Decodes the bytes from ``archived``; `nil` if they are not valid.
    init?(archived: Data) {
        guard let data = try? JSONDecoder().decode(ResumeData.self, from: archived) else { return nil }
        self = data
    }
}
