// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
import ANSystem
import FoundationEssentials
public import HTTPTypes

// Tasks that write responses to files.

extension SessionManager {
    // MARK: Suspended tasks

    /// Creates a suspended task that writes a response to a file.
    ///
    /// The task starts when it is resumed; ``download(_:to:options:)`` returns one that is already running, and
    /// describes the arguments, how the file is written and how the task fails. Releasing a task that was never resumed
    /// cancels it.
    public nonisolated func makeDownloadTask(
        for request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: .success(request), to: destination, options)
    }

    /// Creates a suspended task that resumes an earlier download.
    ///
    /// The task starts when it is resumed; ``download(resuming:with:to:options:)`` returns one that is already running, and
    /// describes the arguments. Releasing a task that was never resumed cancels it.
    public nonisolated func makeDownloadTask(
        resuming data: ResumeData, with request: Request? = nil, to destination: DownloadDestination? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        let destination = destination ?? data.destination.map { .file($0, overwritesExisting: data.overwritesExisting) }
        guard let destination else {
            return makeDownloadTask(
                for: .failure(SessionError.file(data.partialFile, SystemError.missing)),
                to: .file(data.partialFile), options)
        }
        return makeDownloadTask(
            for: request ?? data.request, to: destination, options: options.with { $0.resumeData = data })
    }

    // MARK: Started tasks

    /// Starts writing the response of a GET request to a file.
    ///
    /// The file is written, and the task fails, as described for ``download(_:to:options:)``, which takes any request.
    ///
    /// - Parameters:
    ///   - target: A path or URL as a string, resolved against the base URL, or a `URL`. If that is not possible, the
    ///     task fails with ``SessionError/serialization(_:)``.
    ///   - destination: The path of the file, as a string literal or
    ///     ``DownloadDestination/file(_:overwritesExisting:createsIntermediateDirectories:)``, or a closure that
    ///     chooses it.
    ///   - headers: Header fields that replace all others of the same name; none by default.
    ///   - timeout: The time limit of the whole download; `nil`, the default, for none. See `Request.timeout`.
    ///   - options: The options; by default the download is not durable, and its partial file is kept if it can be
    ///     resumed.
    /// - Returns: The task, which is running or, with ``SessionConfiguration/maximumConcurrentTasks``, waits for
    ///   its turn.
    public nonisolated func download(
        _ target: some RequestTarget, to destination: DownloadDestination, headers: HTTPFields = [:],
        timeout: Duration? = nil, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        let wanted = Result { try request(.get, target, headers: headers, timeout: timeout) }
        return makeDownloadTask(for: wanted, to: destination, options).started()
    }

    /// Starts writing a response to a file.
    ///
    /// The file appears under its name atomically when it is complete, replacing an existing one; a failure leaves an
    /// existing file unchanged. Bytes are written by the task, not on an event-loop thread. The content is stored
    /// decompressed, except that of a durable or resumed download, which asks for no content coding and is stored as
    /// received.
    ///
    /// The ``SessionTask/value`` of the task throws `CancellationError`, the error of a closure of the program, or a
    /// ``SessionError`` such as these, wrapped in ``SessionError/interrupted(by:_:)`` if the download can be resumed,
    /// which requires that a part has arrived, that ``DownloadOptions/keepsPartialFile`` is `true` or the download is
    /// durable, and that the response contained a strong validator or a digest is known:
    ///
    /// - ``SessionError/transport(_:)``, ``SessionError/redirect(_:)`` or ``SessionError/authentication(_:)`` if the
    ///   transfer fails;
    /// - ``SessionError/file(_:)`` if the file cannot be written;
    /// - ``SessionError/notResumable(_:)`` if an earlier download cannot be resumed and this one must not start over,
    ///   or if the server sends a range (status 206) that was not requested;
    /// - ``SessionError/digest(expected:found:path:url:)`` if the content does not have the expected digest;
    /// - ``ANSerialization/SerializationError/rejected(_:)``, in ``SessionError/serialization(_:)``, for a status
    ///   outside of 200–299, with the first 1 MiB of the body, as far as they arrive within a second. No file is written
    ///   then;
    /// - ``SessionError/invalidated`` if the manager was invalidated or shut down before.
    ///
    /// - Parameters:
    ///   - request: The request to send. Any method is possible, but only a GET request without a `Range` field can be
    ///     resumed; with that field, the file consists of the range.
    ///   - destination: The path of the file, as a string literal or
    ///     ``DownloadDestination/file(_:overwritesExisting:createsIntermediateDirectories:)``, or a closure that
    ///     chooses it.
    ///   - options: The options; by default the download is not durable, and its partial file is kept if it can be
    ///     resumed.
    /// - Returns: The task, which is running or, with ``SessionConfiguration/maximumConcurrentTasks``, waits for
    ///   its turn.
    public nonisolated func download(
        _ request: Request, to destination: DownloadDestination, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: request, to: destination, options: options).started()
    }

    /// Starts resuming an earlier download.
    ///
    /// The part that is missing is requested and appended to the bytes in ``ResumeData/partialFile``, if the response
    /// is of the same version of the resource; otherwise the download starts over, or fails with
    /// ``SessionError/notResumable(_:)``. The file is written, and the task fails, as described for
    /// ``download(_:to:options:)``.
    ///
    /// - Parameters:
    ///   - data: The resume data.
    ///   - request: The request to send; `nil`, the default, sends ``ResumeData/request``, a GET request for the same URL
    ///     with the stored header fields, which exclude sensitive ones. To replace an expired link, pass a request for another URL of
    ///     the same file: the validator, the size and any digests are compared. A download cannot be resumed with a
    ///     method other than GET, or with a `Range` field.
    ///   - destination: The destination; `nil`, the default, uses that of the earlier download, which keeps whether an
    ///     existing file is overwritten. If a closure was to choose that, the task fails with ``SessionError/file(_:)``.
    ///   - options: The options; ``DownloadOptions/startsOverIfNotResumable`` selects what happens if the download
    ///     cannot be resumed, and ``DownloadOptions/resumeData`` is ignored in favor of `data`.
    /// - Returns: The task, which is running or, with ``SessionConfiguration/maximumConcurrentTasks``, waits for
    ///   its turn.
    public nonisolated func download(
        resuming data: ResumeData, with request: Request? = nil, to destination: DownloadDestination? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(resuming: data, with: request, to: destination, options: options).started()
    }

    // MARK: Scoped tasks

    /// Starts a download and runs a closure with its task; the task ends with the closure.
    ///
    /// If the task is still running when `scope` returns or throws, it is cancelled, which removes the partial file
    /// unless the download is durable. It has ended when this function returns. To wait for the file, await the task's
    /// ``SessionTask/value`` in `scope`: its errors are thrown only there. The task and the other arguments are those of
    /// ``download(_:to:options:)``.
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
    /// not running. Downloads that this or another process is writing are skipped, as are files of other users, and
    /// those that are not records of this library. A record whose partial file is missing is removed.
    ///
    /// - Parameters:
    ///   - directory: The directory of the destinations; its subdirectories are not searched. A relative path is
    ///     resolved against the working directory at the time of the call. A missing one has no downloads.
    ///   - options: The options of the tasks, which are durable in any case; ``DownloadOptions/durable`` by default.
    ///   - prepare: Modifies each request before its task is created, to add credentials, which are not stored, or to
    ///     replace an expired link. By default the requests are sent as they were stored. Check the request's URL before
    ///     adding credentials: the directory may contain downloads from other servers.
    /// - Returns: The tasks; releasing one that was never resumed cancels it, but keeps its files.
    /// - Throws: ``SessionError/file(_:)`` if the directory cannot be read, or a record in it for lack of descriptors, for
    ///   example.
    public nonisolated func restoredDownloads(
        in directory: String, options: DownloadOptions = .durable, preparing prepare: (inout Request) -> Void = { _ in }
    ) throws -> [DownloadTask] {
        do throws(SystemError) {
            return try DownloadRecord.records(in: directory.absolutePath).map { data in
                var request = data.request
                prepare(&request)
                return makeDownloadTask(resuming: data, with: request, options: options.with { $0.isDurable = true })
            }
        } catch  where error.isMissing {
            return []
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
        // A task that is cancelled before it starts leaves the earlier download as it is.
        return makeTask(.download, request, prepare: { $0.resumeData = options.resumeData }, ending: ending) {
            try await self.download($0, job)
        }
    }
}

extension SessionTask where Value == DownloadedFile {
    /// Cancels the task, waits for its end (even if the calling task is cancelled), and returns the data to resume the
    /// download with.
    ///
    /// The task's value then throws `CancellationError`, unless the task has already ended. The bytes remain in
    /// ``ResumeData/partialFile``; ``cancel()`` removes them instead, unless the download is durable.
    ///
    /// - Returns: The resume data; `nil` if no bytes have arrived, the download cannot be resumed, or it was already
    ///   complete. If the download had already failed, the same as ``resumeData``; if it has not started, the data that
    ///   it was to be resumed with.
    public func cancelProducingResumeData() async -> ResumeData? {
        core.isResumeDataWanted = true
        await end()
        return core.resumeData
    }

    /// The data to resume the download with, after the task has failed or was cancelled; `nil` before that, after
    /// success, or if the download cannot be resumed.
    ///
    /// After ``cancel()`` it is `nil` unless the download is durable; ``cancelProducingResumeData()`` keeps the bytes.
    public var resumeData: ResumeData? { core.status.state == .finished ? core.resumeData : nil }
}

extension TaskCore {
    /// Cancels a download, but keeps its partial file.
    package func cancelKeepingPartialFile() {
        isResumeDataWanted = true
        cancel()
    }

    /// Returns the data to resume a cancelled download with as soon as the transfer has ended, without waiting for the
    /// closure that receives its result.
    package func finalResumeData() async -> ResumeData? {
        await waitForEnd()
        return resumeData
    }
}

// Downloads to a path that is not a literal. They are hidden from the documentation, where links to the functions with a
// destination would be ambiguous.

extension SessionManager {
    /// Starts writing a response to the file at a path; see ``download(_:to:headers:timeout:options:)`` with
    /// ``DownloadDestination/file(_:overwritesExisting:createsIntermediateDirectories:)``.
    @_documentation(visibility: internal)
    public nonisolated func download(
        _ target: some RequestTarget, to path: String, headers: HTTPFields = [:], timeout: Duration? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        download(target, to: .file(path), headers: headers, timeout: timeout, options: options)
    }

    /// Starts writing a response to the file at a path; see ``download(_:to:options:)``.
    @_documentation(visibility: internal)
    public nonisolated func download(
        _ request: Request, to path: String, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        download(request, to: .file(path), options: options)
    }

    /// Creates a suspended task that writes a response to the file at a path; see ``makeDownloadTask(for:to:options:)``.
    @_documentation(visibility: internal)
    public nonisolated func makeDownloadTask(
        for request: Request, to path: String, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        makeDownloadTask(for: request, to: .file(path), options: options)
    }

    /// Starts writing a response to the file at a path and runs a closure with the task; see
    /// ``withDownload(_:to:options:_:)``.
    @_documentation(visibility: internal)
    public nonisolated func withDownload<Value>(
        _ request: Request, to path: String, options: DownloadOptions = DownloadOptions(),
        _ scope: (DownloadTask) async throws -> Value
    ) async rethrows -> Value {
        try await withDownload(request, to: .file(path), options: options, scope)
    }
}
