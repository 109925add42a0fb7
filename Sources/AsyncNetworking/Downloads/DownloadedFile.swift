// SPDX-License-Identifier: MIT

/// A file written by a download.
public struct DownloadedFile: Sendable {
    /// The path of the file.
    public var path: String
    /// The size of the file in bytes.
    public var size: Int64
    /// The response that the file was written from: its status, header fields, trailers and metrics.
    public var response: Response<Void>

    /// Creates the value, for testing.
    package init(path: String, size: Int64, response: Response<Void>) {
        self.path = path
        self.size = size
        self.response = response
    }
}
