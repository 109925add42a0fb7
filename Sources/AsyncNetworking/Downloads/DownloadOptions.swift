// SPDX-License-Identifier: MIT

public import ANHTTP

/// The options of a download: whether it survives the process, how it is resumed, and how its content is verified. See
/// ``SessionManager/download(_:to:options:)``.
public struct DownloadOptions: Sendable {
    /// Whether the download can be resumed after the end of the process; `false` by default.
    ///
    /// A durable download to `disk.iso` is written to `disk.iso.part`, with a record in `disk.iso.part.json`. The
    /// record contains the URL, which may be secret; it has mode 0600. The two files are kept after cancellation and
    /// after any failure but a wrong digest; ``ResumeData/discard()`` removes them. The next durable download of the
    /// same URL to the same path resumes this one, and ``SessionManager/restoredDownloads(in:options:preparing:)``
    /// finds it.
    ///
    /// Only a GET request without `Range`, to the path of a regular file, can be durable; the option is ignored for
    /// others.
    public var isDurable = false
    /// The data of an earlier download to resume; `nil`, the default, starts a new one or, if ``isDurable`` is set,
    /// continues an unfinished one to the same path.
    public var resumeData: ResumeData?
    /// Whether a download starts over if an earlier one cannot be resumed, for example because the resource has
    /// changed, the server does not support ranges, or the partial file is missing; `true` by default.
    ///
    /// If `false`, the download then fails with ``SessionError/notResumable(_:)``, and the partial file is kept.
    public var startsOverIfNotResumable = true
    /// Whether the partial file of a failed download is kept for ``SessionError/resumeData``; `true` by default.
    ///
    /// It is kept only if a later request can continue it: after a response to a GET request with a strong validator,
    /// or if a digest is known by which to verify the whole. A durable download keeps it in any case. A program that
    /// does not resume downloads sets this to `false`, or calls ``ResumeData/discard()``.
    public var keepsPartialFile = true
    /// The expected digest of the file; `nil`, the default, expects that of a resumed download, or else none. If the
    /// digest differs, the download fails with ``SessionError/digest(expected:found:path:url:)``, and the downloaded
    /// bytes are removed.
    ///
    /// Digests that the server sends in `Repr-Digest` and `Content-Digest` (RFC 9530) are always verified if they are
    /// SHA-256 or SHA-512 and the content was not decoded.
    public var expectedDigest: ContentDigest?
    /// Whether the download succeeds without a request if the destination exists and has the ``expectedDigest``;
    /// `false` by default.
    ///
    /// The file is read to compute its digest. The response of the ``DownloadedFile`` then has the status 304 and no
    /// header fields. The option is ignored without a digest, and if a closure chooses the path.
    public var skipsVerifiedFile = false
    /// The number of bytes after which a durable download flushes its file to the disk and updates its record; 8 MiB by
    /// default, and 0 or less for each chunk. It also does so once per second. At most the bytes since the last flush
    /// are lost with the process.
    public var flushInterval: Int64 = 8 << 20

    /// Creates the default options: a download that is not durable, starts over if it cannot be resumed, and expects no
    /// digest.
    public init() {}

    /// The default options with ``isDurable`` set to `true`.
    public static let durable = DownloadOptions().with { $0.isDurable = true }

    /// Returns a copy of the options modified by a closure.
    ///
    /// - Parameter change: Modifies the copy.
    public func with(_ change: (inout DownloadOptions) -> Void) -> DownloadOptions {
        var copy = self
        change(&copy)
        return copy
    }
}
