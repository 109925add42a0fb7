// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import HTTPTypes

// Downloads to a path that is not a literal.

extension SessionManager {
    /// Starts writing a response to the file at a path; see ``download(_:to:headers:timeout:options:)-swift.method`` with
    /// ``DownloadDestination/file(_:overwritesExisting:createsIntermediateDirectories:)``.
    public nonisolated func download(
        _ target: some RequestTarget, to path: String, headers: HTTPFields = [:], timeout: Duration? = nil,
        options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        download(target, to: .file(path), headers: headers, timeout: timeout, options: options)
    }

    /// Starts writing a response to the file at a path; see ``download(_:to:options:)``.
    public nonisolated func download(
        _ request: Request, to path: String, options: DownloadOptions = DownloadOptions()
    ) -> DownloadTask {
        download(request, to: .file(path), options: options)
    }
}
