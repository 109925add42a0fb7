// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

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
