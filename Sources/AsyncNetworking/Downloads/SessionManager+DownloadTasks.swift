// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
public import HTTPTypes

// Tasks that write responses to files.

extension SessionManager {
    // MARK: Suspended tasks

    /// Creates a suspended task that writes a response to a file; see ``makeDataTask(for:)`` and
    /// ``download(_:to:options:)``.
    public nonisolated func makeDownloadTask(
        for request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: .success(request), to: destination, options)
    }

    /// Creates a suspended task that resumes an earlier download; see ``download(resuming:with:to:options:)``.
    public nonisolated func makeDownloadTask(
        resuming data: ResumeData, with request: Request? = nil, to destination: DownloadDestination? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        let destination = destination ?? data.destination.map { .file($0) }
        guard let destination else {
            return makeDownloadTask(
                for: .failure(SessionError.file(data.partialFile, SystemError.missing)),
                to: .file(data.partialFile), options)
        }
        return makeDownloadTask(
            for: request ?? data.request, to: destination, options: options.with { $0.resumeData = data })
    }

    // MARK: Started tasks

    /// Starts writing the response of a GET request to a file; see ``download(_:to:options:)``.
    public nonisolated func download(
        _ path: String, to destination: DownloadDestination, headers: HTTPFields = [:],
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: Result { try request(.get, path, headers: headers) }, to: destination, options).started()
    }

    /// Starts writing a response to a file.
    ///
    /// The file appears under its name atomically when it is complete, replacing an existing one; a failure leaves an
    /// existing file unchanged. If the download fails after a part has arrived, ``SessionError/resumeData`` allows
    /// resuming it, provided that the response contained a strong validator or a digest is known. A response with a
    /// status outside of 200–299 is not written: the task's value throws
    /// ``ANSerialization/SerializationError/rejected(_:)`` with the first 1 MiB of its body.
    ///
    /// Bytes are written by the task, not on the network thread.
    public nonisolated func download(
        _ request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: request, to: destination, options: options).started()
    }

    /// Starts resuming an earlier download.
    ///
    /// - Parameters:
    ///   - data: The resume data.
    ///   - request: The request to send; `nil`, the default, sends a GET request for the same URL with the stored
    ///     header fields, which exclude sensitive ones. To replace an expired link, pass a request for another URL of
    ///     the same file: the validator, the size and any digests are compared.
    ///   - destination: The destination; `nil`, the default, uses that of the earlier download.
    ///   - options: The options; ``DownloadOptions/startsOverIfNotResumable`` selects what happens if the download cannot be
    ///     resumed.
    public nonisolated func download(
        resuming data: ResumeData, with request: Request? = nil, to destination: DownloadDestination? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(resuming: data, with: request, to: destination, options: options).started()
    }

    // MARK: Scoped tasks

    /// Starts a download and runs a closure with its task; the task ends with the closure.
    ///
    /// If the task is still running when `scope` returns or throws, it is cancelled. It has ended when this function
    /// returns.
    public nonisolated func withDownload<Value>(
        _ request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        _ scope: (DownloadTask) async throws -> Value
    ) async rethrows -> Value {
        try await makeDownloadTask(for: request, to: destination, options: options).started().endingWithScope(scope)
    }

    // MARK: After a restart

    /// Creates a suspended task for each durable download that a process left unfinished in a directory, sorted by file
    /// name.
    ///
    /// Call this function after a restart, because Linux has no service that continues downloads while the program is
    /// not running. Downloads that this or another process is writing are skipped.
    ///
    /// - Parameters:
    ///   - directory: The directory of the destinations; its subdirectories are not searched.
    ///   - options: The options of the tasks, which are durable in any case.
    ///   - prepare: Modifies each request before its task is created, to add credentials, which are not stored, or to
    ///     replace an expired link.
    /// - Throws: ``SessionError/file(_:)`` if the directory cannot be read.
    public nonisolated func restoredDownloads(
        in directory: String, options: DownloadOptions = .durable, preparing prepare: (inout Request) -> Void = { _ in }
    ) throws -> [DownloadTask] {
        do throws(SystemError) {
            return try DownloadRecord.records(in: directory).map { data in
                var request = data.request
                prepare(&request)
                return makeDownloadTask(resuming: data, with: request, options: options.with { $0.isDurable = true })
            }
        } catch {
            throw SessionError.file(directory, error)
        }
    }

    // MARK: Creating tasks

    /// Creates a suspended task that writes a response to a file.
    ///
    /// - Parameter ending: Called with the result when the task has ended, before its value is available.
    package nonisolated func makeDownloadTask(
        for request: Result<Request, any Error>, to destination: DownloadDestination, _ options: DownloadOptions,
        ending: (@Sendable (Result<DownloadedFile, any Error>) async -> Void)? = nil
    ) -> DownloadTask {
        let redirectPolicy = (try? request.get())?.redirectPolicy ?? configuration.redirectPolicy
        let job = DownloadJob(
            destination: destination, options: options, sensitiveHeaders: redirectPolicy.sensitiveHeaders)
        return makeTask(.download, request, ending: ending) { try await self.download($0, job) }
    }
}

extension TransferTask where Value == DownloadedFile {
    /// Cancels the task, waits for its end, and returns the data to resume the download with.
    ///
    /// The task's value then throws `CancellationError`. The bytes remain in ``ResumeData/partialFile``;
    /// ``cancel()`` removes them instead.
    ///
    /// - Returns: The resume data; `nil` if no bytes have arrived, the download cannot be resumed, or it was already
    ///   complete.
    public func cancelProducingResumeData() async -> ResumeData? {
        core.isResumeDataWanted = true
        await end()
        return core.resumeData
    }

    /// The data to resume the download with, after the task has failed or was cancelled; `nil` before that, or if the
    /// download cannot be resumed. See ``SessionError/resumeData`` and ``cancelProducingResumeData()``.
    public var resumeData: ResumeData? { core.resumeData }
}
