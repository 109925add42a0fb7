// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The core's task behind a task.
enum TaskWork: Sendable {
    /// It collects the response.
    case collection(TransferTask<Void>)
    /// It writes the response to a file.
    case download(DownloadTask)

    /// Resumes, suspends and cancels it.
    var transfer: TransferCore {
        switch self {
        case .collection(let task): task.core
        case .download(let task): task.core
        }
    }

    /// Cancels it, and returns what it takes to go on later.
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
    /// As Foundation has it: bytes that nobody looks into.
    var archived: Data? { try? JSONEncoder().encode(self) }

    /// What ``archived`` has made.
    init?(archived: Data) {
        guard let data = try? JSONDecoder().decode(ResumeData.self, from: archived) else { return nil }
        self = data
    }
}
