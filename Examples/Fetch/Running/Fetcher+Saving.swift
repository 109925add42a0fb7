// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

extension Fetcher {
    /// Saves the response of a job to a file, which appears when it is complete.
    ///
    /// After a failure the part received remains beside it, and a later run can resume it.
    func save(
        _ job: FetchJob, to path: String, after previous: OneShotEvent?, _ narrator: Narrator,
        _ watcher: ExchangeWatcher
    ) async throws {
        let left = ResumeData.left(at: path)
        if !output.continues { left?.discard() }
        let options = options.with { $0.resumeData = output.continues ? left : nil }
        try await session.withDownload(job.request, to: .file(path), options: options) { task in
            async let told: Void = tell(task.events, of: path, narrator, watcher)
            async let shown: Void = show(task.progress, of: job)
            let start = ContinuousClock.now
            let result = await Result { try await task.value }
            await told
            await shown
            board.end(job.index)
            switch result {
            case .success(let file):
                narrator.say(trailers: file.response.trailers)
                if output.includesHead {
                    await previous?.wait()
                    try await StandardStream.output.write(Data(HeadText.of(file.response.head).utf8))
                }
                tell(file, elapsed: ContinuousClock.now - start, narrator)
            case .failure(let error):
                keep(task.resumeData, of: path, narrator)
                throw Self.statusError(for: error) ?? error
            }
        }
    }

    func tell(
        _ events: BroadcastStream<TaskEvent>, of path: String, _ narrator: Narrator, _ watcher: ExchangeWatcher
    ) async {
        for await event in events {
            switch event {
            case .exchange(_, .informational(let head)): narrator.say(head: head)
            case .response(let head): narrator.say(head: head)
            case .exchange(_, let event): watcher.receive(event)
            case .continued(let offset, _) where !output.isSilent:
                narrator.tell("\(path): resuming after \(Quantity.bytes(offset))\n")
            default: break
            }
        }
    }

    func show(_ progress: BroadcastStream<TransferProgress>, of job: FetchJob) async {
        for await progress in progress { board.report(progress, of: job.index) }
    }

    private func tell(_ file: DownloadedFile, elapsed: Duration, _ narrator: Narrator) {
        guard !output.isSilent else { return }
        let seconds = elapsed / .seconds(1)
        let received = Double(file.response.metrics.responseBodyBytes)
        let rate = seconds > 0.001 ? ", " + Quantity.rate(received / seconds) : ""
        narrator.tell("\(file.path): \(Quantity.bytes(file.size)) in \(Quantity.time(elapsed))\(rate)\n")
    }

    /// Reports the incomplete part of a file, or deletes it if it cannot be resumed.
    private func keep(_ data: ResumeData?, of path: String, _ narrator: Narrator) {
        guard let data else {
            ResumeData.left(at: path)?.discard()
            return
        }
        let bytes = Quantity.bytes(data.offset)
        narrator.tell("fetch: \(path): \(bytes) are in \(path).part; fetch --continue resumes the download.\n")
    }

    /// Returns the status error for an error response, as for a response that is printed.
    private static func statusError(for error: any Error) -> (any Error)? {
        (error as? SessionError)?.rejection.map { StatusError(head: $0.head) }
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
