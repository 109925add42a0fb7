// SPDX-License-Identifier: MIT

import ANHTTP
import ANSerialization
import ANSystem
import FoundationEssentials
import HTTPTypes

/// The parameters of a download.
struct DownloadJob: Sendable {
    var destination: DownloadDestination
    var options: DownloadOptions
    /// The header fields that are not stored.
    var sensitiveHeaders: Set<HTTPField.Name>

    /// The path for error descriptions.
    var path: String {
        switch destination.target {
        case .path(let path): path
        case .choice(let directory, _): directory
        }
    }
}

extension DownloadJob {
    /// Returns the size of the destination if it has the expected digest and need not be downloaded; otherwise `nil`.
    ///
    /// - Throws: The errors of `waitUntilRunning`, which is awaited between two reads.
    fileprivate func verifiedSize(waitUntilRunning: () async throws -> Void) async throws -> Int64? {
        guard options.skipsVerifiedFile, let digest = options.expectedDigest, case .path(let path) = destination.target,
            let file = try? RegularFile(path: ProcessDirectories.absolute(path))
        else { return nil }
        var checks = DigestChecks([], and: digest)
        var bytes = Data(count: 256 << 10)
        while file.remaining > 0 {
            var span = bytes.mutableBytes
            guard let count = try? file.read(into: &span), count > 0 else { return nil }
            checks.update(bytes.bytes.extracting(first: count))
            try await waitUntilRunning()
        }
        return checks.isVerified ? file.size : nil
    }
}

extension SessionManager {
    /// Performs a task's request and writes the body to a file; waits whenever the task is suspended.
    nonisolated func download(_ task: RunningTask, _ job: DownloadJob) async throws -> DownloadedFile {
        let core = task.core
        if let size = try await job.verifiedSize(waitUntilRunning: { try await core.waitUntilRunning() }) {
            let head = ResponseHead(status: .notModified, url: task.request.url)
            core.receive(head)
            core.complete(size)
            return DownloadedFile(path: job.path, size: size, response: Response((), head: head))
        }
        let file = try DownloadFile(
            job, for: task.request, on: pipeline, stopwatch: Stopwatch(configuration.clock))
        do {
            var response: Response<Void>?
            while response == nil { response = try await fill(file, by: task) }
            guard let response else { throw CancellationError() }
            core.complete(file.size, response.metrics)
            return try await file.commit(response) { try await core.waitUntilRunning() }
        } catch {
            // An error thrown by the program cannot carry resume data, and means that the file is not wanted.
            let reason = error as? SessionError
            // A later request would be answered by the same bytes.
            if case .digest = reason, let source = file.source { configuration.cache?.remove(source) }
            let isWanted =
                error is CancellationError ? core.isResumeDataWanted : job.options.keepsPartialFile && reason != nil
            core.resumeData = file.end(after: error, isWanted: isWanted)
            guard let data = core.resumeData, let reason else { throw error }
            throw SessionError.interrupted(by: reason, data)
        }
    }

    /// Requests the missing bytes of a file and writes them. Returns `nil` if another request is necessary, and the step
    /// that retries has not sent it, because an interceptor has not passed its response on.
    private nonisolated func fill(_ file: DownloadFile, by task: RunningTask) async throws -> Response<Void>? {
        let core = task.core
        let continuation = Continuation()
        return try await perform(
            task.erased, task.gatedRequest { file.prepare(&$0) }, delivery: .streamed, reporting: core,
            continuation: continuation
        ) { head, body -> Response<Void>? in
            switch file.plan.action(for: head, isReplaced: body.provenance == .replaced) {
            case .reject:
                core.receive(head)
                let validation = ResponseValidation(statuses: file.plan.acceptableStatuses)
                try await validation.validate(head, Self.errorPage(body))
                throw TransportError(.internalInconsistency("A rejected response passed validation."))
            case .fail(let failure):
                throw SessionError.notResumable(failure)
            case .startOver(let failure):
                continuation.set(try file.startOver(because: failure))
                return nil
            case .write:
                core.receive(head)
                try file.beginWhole(head, body)
                core.accept()
                if let path = file.partial?.path { await body.willBeWritten(to: path) }
            case .append(let range):
                core.receive(head)
                try await file.beginPart(head, range) { try await core.waitUntilRunning() }
                core.accept(offset: file.size, total: file.known?.totalBytes)
            case .complete:
                core.receive(head)
                try await file.beginPart(head, nil) { try await core.waitUntilRunning() }
                core.accept(offset: file.size, total: file.size, countsExchange: false)
                return Response((), head: head)
            }
            do {
                for try await chunk in body {
                    guard try file.write(chunk) else {
                        continuation.set(
                            try file.startOver(because: .wrongRange(head.headers.first(.contentRange))))
                        return nil
                    }
                    try await core.waitUntilRunning()
                }
            } catch let error as TransportError {
                if let next = file.rest() { continuation.set(next) }
                throw error
            }
            let next = try await file.endBody(body.trailers ?? [:]) { try await core.waitUntilRunning() }
            guard let next else { return Response((), head: head, ending: body.ending ?? ResponseEnding()) }
            continuation.set(next)
            return nil
        }
    }

    /// Reads at most 1 MiB of a body.
    private nonisolated static func errorPage(_ body: ResponseBody) async throws -> Data {
        var page = Data()
        for try await chunk in body {
            page.append(chunk.prefix((1 << 20) - page.count))
            if page.count == 1 << 20 { break }
        }
        return page
    }
}
