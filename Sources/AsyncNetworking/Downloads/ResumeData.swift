// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
package import HTTPTypes

/// The state of an unfinished download, from which it can be resumed.
///
/// ``SessionError/resumeData`` is the value for a failed download, ``TransferTask/cancelProducingResumeData()`` returns
/// the one of a cancelled download, and ``left(at:)`` that of a durable one. It can be stored anywhere; the bytes
/// remain in ``partialFile``. Its encoded form contains the URL and the request's header fields except those in
/// ``RedirectPolicy/sensitiveHeaders``, which may include secrets. See
/// ``SessionManager/download(resuming:with:to:options:)``.
public struct ResumeData: Codable, Hashable, Sendable {
    /// The URL of the original request, before redirects.
    ///
    /// An expired link can be replaced by another URL of the same file; the validator of the response (`ETag` or
    /// `Last-Modified`), its size and any known digests show whether it is the same.
    public var url: URL
    /// The request's header fields, without the sensitive ones (see ``RedirectPolicy/sensitiveHeaders``). Credentials
    /// must be added again to resume the download.
    package var headers: HTTPFields
    /// The representation that the bytes belong to.
    package var representation: Representation
    /// The number of valid bytes in the partial file, at which the download continues; 0 if it must start over. Bytes
    /// of the file after it are discarded.
    public var offset: Int64
    /// The size of the whole file in bytes; `nil` if the server did not send it.
    public var totalBytes: Int64? {
        get { representation.totalBytes }
        set { representation.totalBytes = newValue }
    }
    /// The path of the file with the bytes that have been received. If it is missing or shorter than ``offset``, the
    /// download cannot be resumed, and ``DownloadOptions/startsOverIfNotResumable`` selects what happens.
    public var partialFile: String
    /// The absolute path of the destination; `nil` if a closure was to choose it. If a file existed there when the
    /// download began, symbolic links are resolved. For a durable download whose directory was moved together with the
    /// partial file, ``left(at:)`` and ``SessionManager/restoredDownloads(in:options:preparing:)`` return the path in
    /// the new directory.
    public var destination: String?
    /// Whether a file that exists at the destination is overwritten.
    package var overwritesExisting: Bool
    /// The digest that the program expects of the whole file; `nil` for none.
    ///
    /// OpenSSL cannot store the state of an unfinished digest, so resuming a download hashes the partial file again.
    package var expectedDigest: ContentDigest?
    /// The request to resume the download with: a GET request for ``url`` with the stored header fields, which do not
    /// include sensitive ones such as `Authorization`. The download adds `Range` and `If-Range`.
    public var request: Request { Request(url: url, headers: headers) }

    /// Returns the resume data of an unfinished durable download to a path; `nil` if its record is missing, malformed,
    /// or cannot be read. Reads the record on the calling thread.
    ///
    /// It detects neither that the partial file is missing nor that the download is being continued: resuming it then
    /// starts over (or fails with ``SessionError/notResumable(_:)``) in the first case, and fails with
    /// ``SessionError/FileFailure/Reason/inUse`` in the second.
    ///
    /// - Parameter destination: The path of the download's destination; a relative one is resolved against the working
    ///   directory.
    public static func left(at destination: String) -> ResumeData? {
        DownloadRecord.read(
            beside: DownloadRecord.partialFile(for: FileLocation(ProcessDirectories.absolute(destination)).path))
    }

    /// Whether a later response can be identified as the same version, or verified by a digest.
    var isVerifiable: Bool { expectedDigest != nil || representation.isVerifiable }

    /// Whether a request with these fields selects the same representation; see ``Representation/isSelected(by:)``. The
    /// digest that the program expects identifies it as well.
    func isSelected(by fields: HTTPFields) -> Bool { expectedDigest != nil || representation.isSelected(by: fields) }

    /// Removes the partial file and, for a durable download, its record, after which the download cannot be resumed.
    /// Files that do not exist or cannot be removed, and directories, are ignored. Do not call it while the download is running.
    public func discard() {
        FileLocation.remove(partialFile)
        DownloadRecord.discard(beside: partialFile)
    }
}
