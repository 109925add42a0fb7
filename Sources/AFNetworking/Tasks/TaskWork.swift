// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The core's task behind a task: what is done to it, and what it brings.
struct TaskWork: Sendable {
    /// Resumes, suspends and cancels it.
    let transfer: TransferCore
    /// What it brings, once it is over.
    let outcome: @Sendable () async throws -> TaskOutcome
    /// Cancels it, and returns what it takes to go on later.
    let interrupt: @Sendable () async -> ResumeData?

    /// The work of a task that collects.
    init(_ task: TransferTask<TaskOutcome>) {
        transfer = task.core
        outcome = { try await task.value }
        interrupt = {
            task.cancel()
            return nil
        }
    }

    /// The work of a download; `finish` makes the outcome of the file.
    init(
        _ task: DownloadTask,
        finish: @escaping @Sendable (Result<DownloadedFile, any Error>) async throws -> TaskOutcome
    ) {
        transfer = task.core
        outcome = { try await finish(Result { try await task.value.value }) }
        interrupt = { await task.cancelProducingResumeData() }
    }
}

/// What a transfer has brought.
struct TaskOutcome: Sendable {
    /// The body; empty for a download.
    var data = Data()
    /// Where a download was put.
    var file: URL?
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
