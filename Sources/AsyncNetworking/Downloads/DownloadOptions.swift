// SPDX-License-Identifier: MIT

public import ANHTTP

/// How a download goes about its file.
public struct DownloadOptions: Sendable {
    /// Whether the download survives the end of the process; false by default.
    ///
    /// A durable download of `disk.iso` is written to `disk.iso.part`, with its record in `disk.iso.part.json`, which its
    /// owner only can read: the URL may have secrets. The next durable download of the same URL to the same place goes on
    /// where this one was, and ``SessionManager/restoredDownloads(in:options:preparing:)`` finds it. Neither failure nor
    /// cancellation removes them; ``ResumeData/discard()`` does.
    ///
    /// Only a GET to a path can be durable; others are not.
    public var isDurable = false
    /// Goes on with an earlier download instead of starting anew.
    public var resumeData: ResumeData?
    /// What happens when an earlier download cannot be continued, because the resource has changed or the server cannot.
    public var whenNotResumable = WhenNotResumable.startOver
    /// Whether the bytes of a download that fails stay, so that ``SessionError/resumeData`` can name them; true by default.
    ///
    /// They stay only where a later request can go on with them: after a response to GET with a strong validator, or with a
    /// digest to verify the whole by. A program that does not resume sets this to false, or calls
    /// ``ResumeData/discard()``.
    public var keepsPartialFile = true
    /// The digest that the file must have; otherwise the download fails with ``SessionError/digest(_:)`` and nothing is left.
    ///
    /// What the server itself says of its file in `Repr-Digest` and `Content-Digest` (RFC 9530) is verified without being
    /// asked for, where it is SHA-256 or SHA-512 and the content was not decompressed on its way.
    public var expectedDigest: ContentDigest?
    /// How many bytes a durable download may lose with the process: after so many, and after each second, the file is
    /// flushed to the disk and the record says so. 8 MiB by default.
    public var flushInterval: Int64 = 8 << 20

    /// Creates the default options.
    public init() {}

    /// The options of a download that survives the end of the process.
    public static let durable = DownloadOptions().with { $0.isDurable = true }

    /// Returns a copy that `change` has changed.
    public func with(_ change: (inout DownloadOptions) -> Void) -> DownloadOptions {
        var copy = self
        change(&copy)
        return copy
    }

    /// What happens when a download cannot be continued.
    public enum WhenNotResumable: Hashable, Sendable {
        /// It starts over, and what was there is lost.
        case startOver
        /// It fails with ``SessionError/notResumable(_:)``, and what was there stays.
        case fail
    }
}
