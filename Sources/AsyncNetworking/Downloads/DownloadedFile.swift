// SPDX-License-Identifier: MIT

/// A file written by a download: the value of a ``DownloadTask``. The file belongs to the program; releasing this value
/// does not remove it.
public struct DownloadedFile: Sendable {
    /// The path of the file, exactly as the destination names it: it may be relative, and symbolic links are not
    /// resolved. In the closure of a destination that chooses it, the path of the temporary file.
    public var path: String
    /// The size of the whole file in bytes, including those of an earlier download that was resumed; after
    /// decompression if the content was decompressed.
    public var size: Int64
    /// The response that the file was written from: its status, header fields, trailers and metrics. If several
    /// requests were necessary, it is the last one. The status is in 200–299, usually 206 for a download that was
    /// resumed, with two exceptions: 416 if the bytes were already complete, and 304 if
    /// ``DownloadOptions/skipsVerifiedFile`` made the request unnecessary.
    public var response: Response<Void>

    /// Creates the value, for testing.
    package init(path: String, size: Int64, response: Response<Void>) {
        self.path = path
        self.size = size
        self.response = response
    }
}
