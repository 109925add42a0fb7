// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// A runner of jobs with one session: it performs several concurrently and prints their output in order.
struct Fetcher: Sendable {
    let session: SessionManager
    let output: OutputOptions
    /// The options for saving files.
    let options: DownloadOptions
    let console: Console
    let board: TransferBoard

    /// Performs all jobs and returns their statuses in the order of the jobs.
    ///
    /// Jobs start in order, and at most as many as there are connections per host: the job whose output is next never
    /// waits for a connection held by a later job.
    func run(_ jobs: [FetchJob], atOnce limit: Int) async -> [ExitStatus] {
        let finished = jobs.map { _ in OneShotEvent() }
        var statuses = [ExitStatus](repeating: .success, count: jobs.count)
        await withTaskGroup(of: (Int, ExitStatus).self) { group in
            for (index, job) in jobs.enumerated() {
                if index >= limit, let (done, status) = await group.next() { statuses[done] = status }
                group.addTask {
                    defer { finished[index].signal() }
                    return (index, await run(job, after: index > 0 ? finished[index - 1] : nil))
                }
            }
            for await (done, status) in group { statuses[done] = status }
        }
        return statuses
    }

    private func run(_ job: FetchJob, after previous: OneShotEvent?) async -> ExitStatus {
        let narrator = Narrator(
            console, isVerbose: output.isVerbose, isLive: previous == nil, url: job.request.url)
        let watcher = ExchangeWatcher(job.index, board: board, narrator: narrator)
        var failure: (any Error)?
        do {
            try await Narrator.$current.withValue(narrator) {
                try await perform(job, after: previous, narrator, watcher)
            }
        } catch {
            failure = error
        }
        board.end(job.index)
        await previous?.wait()
        narrator.goLive()
        if output.showsTrace {
            for (metrics, url) in zip(watcher.metrics, narrator.urls) {
                narrator.tell(TraceTable.text(metrics, title: Redaction.byName.url(url.absoluteString)))
            }
        }
        guard let failure else { return .success }
        if let message = Self.message(for: failure) {
            narrator.tell("fetch: \(job.name.isEmpty ? "" : job.name + ": ")\(message)\n")
        }
        return ExitStatus(for: failure)
    }

    private func perform(
        _ job: FetchJob, after previous: OneShotEvent?, _ narrator: Narrator, _ watcher: ExchangeWatcher
    ) async throws {
        narrator.say(request: job.request)
        if job.isWebSocket { return try await converse(over: job, after: previous, narrator) }
        if output.printsEvents { return try await printEvents(of: job, after: previous, narrator) }
        beginProgress(of: job)
        if job.isResumable { return try await upload(job, after: previous, narrator, watcher) }
        if case .file(let path) = job.target {
            return try await save(job, to: path, after: previous, narrator, watcher)
        }
        try await session.withResponse(for: job.request, reporting: watcher) { head, body in
            narrator.say(head: head)
            if output.failsOnStatus, head.status.code >= 400 { throw StatusError(head: head) }
            if StandardStream.output.isTerminal { board.end(job.index) }
            await previous?.wait()
            narrator.goLive()
            try Task.checkCancellation()
            if output.printsJSONLines {
                try await printJSONLines(of: body, narrator)
            } else {
                try await print(body, of: head, of: job)
            }
            narrator.say(trailers: body.trailers ?? [:])
        }
    }

    /// Shows a bar for a saved file only: a printed body shows its own progress.
    private func beginProgress(of job: FetchJob) {
        switch job.target {
        case .file(let path): board.begin(job.index, label: path)
        case .standardOutput where !StandardStream.output.isTerminal || job.request.body.length != 0:
            board.begin(job.index, label: job.name)
        case .standardOutput: break
        }
    }

    func print(_ body: ResponseBody, of head: ResponseHead, of job: FetchJob) async throws {
        if output.includesHead || job.request.method == .head {
            try await StandardStream.output.write(Data(HeadText.of(head).utf8))
        }
        let refusesBinary = refusesBinary(job)
        var isFirst = true
        for try await chunk in body {
            if isFirst, refusesBinary, chunk.contains(0) { throw OutputError.binary }
            isFirst = false
            try await StandardStream.output.write(chunk)
        }
    }

    /// Whether bytes that could control the terminal are not printed.
    func refusesBinary(_ job: FetchJob) -> Bool {
        job.target == .standardOutput(takesBinary: false) && StandardStream.output.isTerminal
    }

    /// Returns the message for an error; `nil` if the user caused it by Ctrl-C or by closing the pipe.
    private static func message(for error: any Error) -> String? {
        switch error {
        case is CancellationError, OutputError.readerGone: nil
        default: "\(error)"
        }
    }
}
