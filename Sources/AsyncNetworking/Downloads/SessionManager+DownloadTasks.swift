// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials
public import HTTPTypes

// Tasks that write responses to files.

extension SessionManager {
    // MARK: Made, not started

    /// Makes a task that writes a response to a file; see ``makeDataTask(for:)`` and
    /// ``download(_:to:options:)-(Request,DownloadDestination,_)``.
    public nonisolated func makeDownloadTask(
        for request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: .success(request), to: destination, options)
    }

    /// Makes a task that writes a response to a file at a path.
    public nonisolated func makeDownloadTask(
        for request: Request, to path: String, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: request, to: .file(path), options: options)
    }

    /// Makes a task that goes on with a download; see ``download(resuming:with:to:options:)``.
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

    // MARK: Started

    /// Starts to write the response of a GET to a file; see
    /// ``download(_:to:options:)-(Request,DownloadDestination,_)``.
    public func download(
        _ path: String, to destination: DownloadDestination, headers: HTTPFields = [:],
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: Result { try request(.get, path, headers: headers) }, to: destination, options).started()
    }

    /// Starts to write the response of a GET to a file at a path.
    public func download(
        _ path: String, to destination: String, headers: HTTPFields = [:],
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        download(path, to: .file(destination), headers: headers, options: options)
    }

    /// Starts to write a response to a file.
    ///
    /// A response with a status outside of 200 to 299 is not written: the task's value throws
    /// ``ANSerialization/SerializationError/rejected(_:)`` with its body, cut off at 1 MiB. The file appears under its name
    /// when it is complete, in place of one that was there; a failure leaves that one as it was. After a failure half way
    /// ``SessionError/resumeData`` has what it takes to go on, where the server's response allows that.
    ///
    /// Bytes are written in the task's own thread, not on the network's.
    public func download(
        _ request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: request, to: destination, options: options).started()
    }

    /// Starts to write a response to a file at a path.
    public func download(
        _ request: Request, to path: String, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        download(request, to: .file(path), options: options)
    }

    /// Starts to go on with a download.
    ///
    /// - Parameters:
    ///   - data: What it takes to go on.
    ///   - request: The request to go on with; nil means a GET of the same URL with the same fields, without those that are
    ///     sensitive. One with another URL is for a link that has expired: it must lead to the same file, of which the
    ///     server is asked by the validator, and which is compared by its size and its digests.
    ///   - destination: Where the file is written; nil means where it was to be written.
    ///   - options: How to go about it; ``DownloadOptions/whenNotResumable`` says what happens when that is not possible.
    public func download(
        resuming data: ResumeData, with request: Request? = nil, to destination: DownloadDestination? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(resuming: data, with: request, to: destination, options: options).started()
    }

    // MARK: Within a scope

    /// Writes a response to a file, and runs `scope` meanwhile; the task ends with the scope.
    ///
    /// What is under way when `scope` returns or throws is cancelled, and over when this function returns.
    public nonisolated func withDownload<Value>(
        _ request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions(),
        _ scope: (DownloadTask) async throws -> Value
    ) async rethrows -> Value {
        try await makeDownloadTask(for: request, to: destination, options: options).started().endingWithScope(scope)
    }

    /// Writes a response to a file at a path, and runs `scope` meanwhile; the task ends with the scope.
    public nonisolated func withDownload<Value>(
        _ request: Request, to path: String, options: DownloadOptions = DownloadOptions(),
        _ scope: (DownloadTask) async throws -> Value
    ) async rethrows -> Value {
        try await withDownload(request, to: .file(path), options: options, scope)
    }

    // MARK: After a restart

    /// Makes a task for each durable download that is under way in a folder and was left by its process, in the order of
    /// their names. They go on where they were once they are resumed.
    ///
    /// Linux has no service that goes on with downloads while a program does not run: this is what a program calls when it
    /// runs again. Downloads that are being written, by this process or another one, are not among them.
    ///
    /// - Parameters:
    ///   - folder: The folder that they are written to; not those inside it.
    ///   - options: How to go about them; they are durable in any case.
    ///   - prepare: Changes each request before its task is made: adds the credentials, which are not stored, or replaces a
    ///     link that has expired.
    /// - Throws: ``SessionError/file(_:)`` when the folder cannot be read.
    public nonisolated func restoredDownloads(
        in folder: String, options: DownloadOptions = .durable, preparing prepare: (inout Request) -> Void = { _ in }
    ) throws -> [DownloadTask] {
        do throws(SystemError) {
            return try DownloadRecord.records(in: folder).map { data in
                var request = data.request
                prepare(&request)
                return makeDownloadTask(resuming: data, with: request, options: options.with { $0.isDurable = true })
            }
        } catch {
            throw SessionError.file(folder, error)
        }
    }

    // MARK: How they are made

    /// Makes a task that writes a response to a file.
    ///
    /// - Parameter ending: Done with the result when the task is over, before its value is there.
    package nonisolated func makeDownloadTask(
        for request: Result<Request, any Error>, to destination: DownloadDestination, _ options: DownloadOptions,
        ending: (@Sendable (Result<Response<DownloadedFile>, any Error>) async -> Void)? = nil
    ) -> DownloadTask {
        let redirects = (try? request.get())?.redirects ?? configuration.redirects
        let job = DownloadJob(
            destination: destination, options: options, sensitiveHeaders: redirects.sensitiveHeaders)
        return makeTask(.download, request, ending: ending) { try await self.download($0, job) }
    }
}

extension TransferTask where Value == Response<DownloadedFile> {
    /// Ends the task and returns what it takes to go on with it, once it is over; nil where nothing has come, where nobody
    /// can go on with what has come, or where the task was complete already.
    ///
    /// Its value then throws `CancellationError`. The bytes stay in ``ResumeData/partialFile``, which
    /// ``TransferHandle/cancel()`` removes.
    public func cancelProducingResumeData() async -> ResumeData? {
        core.isResumeDataWanted = true
        await end()
        return core.resumeData
    }

    /// What it takes to go on with the task, once it is over without its file; see ``SessionError/resumeData`` and
    /// ``cancelProducingResumeData()``.
    public var resumeData: ResumeData? { core.resumeData }
}
