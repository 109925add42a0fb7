// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials

/// The options of a download: whether it survives the process, how it is resumed, and how its content is verified. See
/// ``SessionManager/download(_:to:options:)``.
public struct DownloadOptions: Sendable {
    /// Whether the download can be resumed after the end of the process; `false` by default.
    ///
    /// A durable download to `disk.iso` is written to `disk.iso.part`, with a record in `disk.iso.part.json`. The two
    /// files are kept after cancellation and after any failure but a wrong digest; ``ResumeData/discard()`` removes
    /// them. ``SessionManager/restoredDownloads(in:options:preparing:)`` finds them, and the next durable download of
    /// the same URL to the same path continues them. Meanwhile, no other download can have `disk.iso.part` or
    /// `disk.iso.part.json` as its destination: it fails with ``SessionError/FileFailure/Reason/exists``.
    ///
    /// The download continues after the bytes that the record counts only if the response had a strong validator (RFC
    /// 9110 §8.8.1) or a digest of the file is known, and the request selects the same representation: without an entity
    /// tag, it must have the same fields of content negotiation, such as `Accept`, and those that `Vary` named, none of
    /// which may be one in ``RedirectPolicy/sensitiveHeaders``, whose values are not stored. Otherwise it starts over
    /// without an error, even if ``startsOverIfNotResumable`` is `false`.
    ///
    /// The record, which has mode 0600, contains the URL and the header fields of the request, both of which may be
    /// secret. Of the fields, only those in ``RedirectPolicy/sensitiveHeaders`` are left out: add the names of other
    /// secret fields there. Fields of ``SessionConfiguration/headers`` are not stored, except for a salted checksum of
    /// those that select the representation.
    ///
    /// Because ranges refer to the encoded bytes, the request asks for no content coding (`Accept-Encoding: identity`,
    /// unless it has the field), and a body that is encoded nevertheless is stored encoded.
    ///
    /// Only a GET request without `Range`, to the path of a regular file, can be durable; the option is ignored for
    /// others.
    public var isDurable = false
    /// The data of an earlier download to resume; `nil`, the default, starts a new one or, if ``isDurable`` is set,
    /// continues an unfinished one from the same URL to the same path.
    public var resumeData: ResumeData?
    /// Whether a download starts over if an earlier one cannot be resumed, for example because the resource has
    /// changed, the server does not support ranges, or the partial file is missing; `true` by default.
    ///
    /// If `false`, the download then fails with ``SessionError/notResumable(_:)``, possibly as the
    /// ``SessionError/cause`` of an interrupted one. The partial file is kept; if it is the response that shows the
    /// reason, only as ``keepsPartialFile`` says.
    public var startsOverIfNotResumable = true
    /// Whether the partial file of a failed download is kept for ``SessionError/resumeData``; `true` by default.
    ///
    /// It is kept only if a later request can continue it: after a response to a GET request without `Range`, with a
    /// strong validator (RFC 9110 §8.8.1) or a known digest by which to verify the whole, and with at least one byte of
    /// a body that was neither decompressed nor replaced by an interceptor. It is removed after a wrong digest, an error of the program's own, and
    /// cancellation, except by ``SessionTask/cancelProducingResumeData()``. A durable download keeps it regardless of
    /// this option, except after a wrong digest. A program that does not resume downloads sets this to `false`, or
    /// calls ``ResumeData/discard()``.
    public var keepsPartialFile = true
    /// The expected digest of the whole file as it is stored (decompressed, unless the download is durable or resumed);
    /// `nil`, the default, expects that of a resumed download, or else none. If the digest differs, the download fails
    /// with ``SessionError/digest(expected:found:path:url:)``, and the downloaded bytes are removed, except those
    /// written to a device or a pipe.
    ///
    /// Digests that the server sends in `Content-Digest` (RFC 9530) are verified if they are SHA-256 or SHA-512 and the
    /// content was neither decoded nor replaced by an interceptor. Those in `Repr-Digest`, and both in trailers, are,
    /// too, if nothing is written to a device or a pipe; those in `Repr-Digest` only for a GET request without `Range`.
    /// With ``pieceDigests``, none of them is.
    public var expectedDigest: ContentDigest?
    /// The expected digests of the pieces of the file as it is stored; `nil`, the default, for none.
    ///
    /// Each piece is verified when all its bytes are there. One that is wrong is requested again, from another of the
    /// ``mirrors`` if its server has lied, which is then left. The file appears only if all pieces are right, and also the
    /// ``expectedDigest``, if there is one. If no server sends the right bytes of a piece, the download fails with
    /// ``SessionError/digest(expected:found:path:url:)``; the other pieces are kept as after any failure. It fails with
    /// ``SessionError/size(expected:found:url:)`` if the file has another size.
    ///
    /// The digests are not stored with the data of a durable download, because they may be many: a later download needs
    /// them again to continue bytes of mirrors, and verifies the pieces that are there. No content coding is requested,
    /// as described for ``isDurable``, and digests that the server announces are not verified. Devices and pipes fail with
    /// ``ANHTTP/TransportError/Reason/invalidRequest(_:)``.
    public var pieceDigests: PieceDigests?
    /// Whether the download succeeds without a request if the destination exists and has the ``expectedDigest``;
    /// `false` by default.
    ///
    /// The file is read to compute its digest. The response of the ``DownloadedFile`` then has the status 304 and no
    /// header fields, and what an earlier download has left (``resumeData``, or the files of a durable one) is removed. The
    /// option is ignored if neither ``expectedDigest`` nor the resumed download has a digest, if a closure chooses the path,
    /// or if the file cannot be read or is not a regular file.
    public var skipsVerifiedFile = false
    /// The number of segments of the file that are requested at the same time, each over a connection or stream of its
    /// own; 1 by default, which sends one request. Servers that limit the speed of a connection send several segments
    /// faster than one. ``DownloadSegments/automatic`` uses at most 16.
    ///
    /// The first request is for the whole file. If its response has a strong validator or a digest of the file is known,
    /// and states the size of the file, further requests with `Range` and `If-Range` take parts of it; a segment that
    /// has ended takes half of the one with the most bytes left. There are never more segments to a host than
    /// ``ANHTTP/ConnectionLimits/maximumConnectionsPerHost``, also over HTTP/2, and no segment is divided below 1 MiB.
    ///
    /// The whole is received by the first request if the server does not send ranges, if the content has a coding, or if
    /// an interceptor replaces it. If the server accepts fewer connections, the others go on. If the resource changes
    /// meanwhile, the download starts over once. No content coding is requested, as described for ``isDurable``.
    ///
    /// ``ANHTTP/TransferMetrics/segmentHistory`` of the response says how many segments there were.
    public var segments: DownloadSegments = 1
    /// Other URLs of the same file, from which segments are requested as well; none by default.
    ///
    /// The content of a mirror is trusted only because the file has the ``pieceDigests`` or the ``expectedDigest``,
    /// without which a download with mirrors fails with ``ANHTTP/TransportError/Reason/invalidRequest(_:)``. If only the
    /// latter is known and differs, the bytes of mirrors are requested again from the URL of the request. A mirror that
    /// fails, has another size or wrong pieces, changes, sends too little, or is slow is not used further. Requests to
    /// mirrors have the request's header fields except, at another origin, those in
    /// ``RedirectPolicy/sensitiveHeaders``. A request with a body, which other origins would receive, fails with
    /// `invalidRequest` as well.
    ///
    /// With one of ``segments``, mirrors are used only if a piece is wrong, or if the request fails, after its retries,
    /// before a response is accepted: then the first mirror takes the place of the request's URL. If the digest of the
    /// whole is wrong in the end, the download then fails, and all of its bytes are removed, also those of an earlier
    /// one: only ``pieceDigests`` tell which are right.
    public var mirrors: [URL] = []
    /// Reads the body of a response to the download that is rejected, which the error then does not contain. Its errors
    /// are those of the download. `nil`, the default, for an error with the beginning of the body.
    package var readRejected: (@Sendable (ResponseBody, TaskCore) async throws -> Void)?
    /// The sizes and times of segmented downloads.
    package var segmentTuning = SegmentTuning()
    /// The number of bytes after which a durable download flushes its file to the disk and updates its record. It also
    /// does so after the first chunk that arrives a second or more after the last flush.
    package var flushInterval: Int64 = 8 << 20

    /// Whether the file is received in segments, by which pieces are verified, too.
    var wantsSegments: Bool {
        switch segments {
        case .automatic: true
        case .count(let count): count > 1 || pieceDigests != nil
        }
    }

    /// Creates the default options: a download that is not durable, starts over if it cannot be resumed, keeps its
    /// partial file after a failure, expects no digest, and always sends a request.
    public init() {}

    /// The default options with ``isDurable`` set to `true`: a download that can be resumed after the end of the
    /// process.
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

/// The number of segments of a download: an integer literal, or ``automatic``. See ``DownloadOptions/segments``.
public enum DownloadSegments: Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// As many as add speed: the number is doubled while the speed of all together grows, up to the limit of
    /// connections to the hosts.
    case automatic
    /// This number, unless a limit is lower; a number below 1 counts as 1.
    case count(Int)

    /// Creates a number of segments.
    public init(integerLiteral count: Int) {
        self = .count(count)
    }
}

/// The sizes and times of segmented downloads, which tests change.
package struct SegmentTuning: Sendable {
    /// The smallest part into which a segment is divided.
    package var minimum: Int64 = 1 << 20
    /// The time between two measurements of the speed.
    package var interval = Duration.milliseconds(250)
    /// The number of measurements in which a segment receives nothing, or much less than the others, after which its
    /// bytes are requested again.
    package var patience = 12
}

/// The destination of a download: a path, or a closure that chooses one.
///
/// A string is the path of a file, whether it is a literal or not; the functions that resume a download take a path
/// that is not a literal as ``file(_:overwritesExisting:createsIntermediateDirectories:)``:
///
/// ```swift
/// let download = api.download("images/disk.iso", to: "disk.iso")
/// ```
///
/// The bytes are written to a temporary file, whose name ends with `.part`, and which is moved to its final path
/// atomically when it is complete. It is in the directory of the destination or, if a closure chooses that, in a
/// directory for temporary files; a download that is resumed continues the ``ResumeData/partialFile``, which a durable one
/// first renames. A device or a pipe at a given path is written directly. A response with a status outside of 200–299 is
/// never written.
public struct DownloadDestination: ExpressibleByStringInterpolation, Sendable {
    let target: Target
    /// Whether an existing file is overwritten.
    let overwritesExisting: Bool
    /// Whether missing directories are created.
    let createsIntermediateDirectories: Bool

    enum Target: Sendable {
        case path(String)
        case choice(directory: String, @Sendable (DownloadedFile) async throws -> String)
    }

    /// Returns a destination at a path.
    ///
    /// A file that is replaced passes its permissions on to the new one. If the path is a symbolic link to a file, the
    /// file is replaced and the link is kept; a link without a target is itself replaced. If it is a device or a pipe, bytes are written to it directly; a full pipe blocks the thread
    /// of the task, and one whose reader goes away fails the download with ``SessionError/file(_:)`` (`EPIPE`). If it
    /// is a directory, a socket, or a named pipe without a reader (fifo(7)), the download fails with
    /// ``SessionError/file(_:)`` before the request is sent.
    ///
    /// - Parameters:
    ///   - path: The path; a relative one is resolved against the working directory when the task starts.
    ///   - overwritesExisting: Whether an existing file is overwritten; `true` by default. If `false`, the download
    ///     fails with ``SessionError/FileFailure/Reason/exists`` if the file, or a device or pipe, exists: before the
    ///     request is sent if it exists when the task starts, otherwise when the download is complete. It succeeds
    ///     nevertheless if ``DownloadOptions/skipsVerifiedFile`` applies.
    ///   - createsIntermediateDirectories: Whether missing directories of the path are created when the task starts;
    ///     `false` by default, so that the download then fails with
    ///     ``SessionError/FileFailure/Reason/missingDirectory``.
    public static func file(
        _ path: String, overwritesExisting: Bool = true, createsIntermediateDirectories: Bool = false
    ) -> DownloadDestination {
        DownloadDestination(
            target: .path(path), overwritesExisting: overwritesExisting,
            createsIntermediateDirectories: createsIntermediateDirectories)
    }

    /// Returns a destination whose path a closure chooses when the download is complete. Such a download is never
    /// durable; see ``DownloadOptions/isDurable``.
    ///
    /// - Parameters:
    ///   - directory: The directory for the temporary file; `nil`, the default, uses the environment variable `TMPDIR`
    ///     or, if that is unset or empty, `/tmp`. It must exist. If the chosen path is on another file system, the file
    ///     is copied there first and still appears atomically.
    ///   - overwritesExisting: Whether an existing file is overwritten; `true` by default. If `false`, the download
    ///     fails with ``SessionError/FileFailure/Reason/exists`` if the file exists then.
    ///   - createsIntermediateDirectories: Whether missing directories of the chosen path are created; `false` by
    ///     default, so that the download fails with ``SessionError/FileFailure/Reason/missingDirectory``.
    ///   - choose: Receives the temporary file with the response, and returns the path; a relative one is resolved
    ///     against the working directory. If the path is a symbolic link to a file, its target is replaced. A device,
    ///     a pipe or a socket is not replaced: the download fails with ``SessionError/FileFailure/Reason/exists``. The
    ///     closure is called once by the task, after the digests were verified; not if the download fails before. If it
    ///     throws an error of the program's own, the download fails with that error and the temporary file is removed.
    public static func chosen(
        temporaryDirectory directory: String? = nil, overwritesExisting: Bool = true,
        createsIntermediateDirectories: Bool = false,
        by choose: @escaping @Sendable (_ file: DownloadedFile) async throws -> String
    ) -> DownloadDestination {
        DownloadDestination(
            target: .choice(directory: directory ?? ProcessDirectories.temporary, choose),
            overwritesExisting: overwritesExisting,
            createsIntermediateDirectories: createsIntermediateDirectories)
    }

    /// Creates a destination at a path. An existing file is overwritten, and missing directories are not created; see
    /// ``file(_:overwritesExisting:createsIntermediateDirectories:)`` for other destinations.
    ///
    /// - Parameter path: The path; a relative one is resolved against the working directory when the task starts.
    public init(stringLiteral path: String) {
        self = .file(path)
    }

    private init(target: Target, overwritesExisting: Bool, createsIntermediateDirectories: Bool) {
        self.target = target
        self.overwritesExisting = overwritesExisting
        self.createsIntermediateDirectories = createsIntermediateDirectories
    }
}

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

extension ResponseBody {
    /// Writes the rest of the body to a file as it arrives, without blocking an event-loop thread.
    ///
    /// The file appears under its name atomically when it is complete, replacing an existing one; a failure or
    /// cancellation leaves an existing file unchanged. The permissions of a file that is replaced are kept. An empty body results in an empty file. If the path is a
    /// symbolic link to a file, its target is replaced. A device or a pipe is written to directly, so that bytes
    /// written before a failure remain; a named pipe must have a reader, see fifo(7), and blocks the calling thread
    /// while it is full. To write a body that can be resumed, use
    /// ``AsyncNetworking/SessionManager/download(_:to:options:)``.
    ///
    /// - Parameter path: The path of the file, whose directory must exist.
    /// - Returns: The number of bytes written, after decompression, without those that were read before the call.
    /// - Throws: ``AsyncNetworking/SessionError/file(_:)`` if the file cannot be written; ``ANHTTP/TransportError`` if
    ///   the body cannot be received; `CancellationError` if the calling task is cancelled; or the error of a
    ///   ``ANHTTP/ResponseBodySource`` of the program's own.
    @discardableResult
    public func write(to path: String) async throws -> Int64 {
        try await write(to: path) { _ in }
    }

    /// Writes the rest of the body to a file, as ``write(to:)`` does, and calls `observer` with each chunk after it was
    /// written.
    ///
    /// - Parameter mode: The permission bits of the file; `nil`, the default, keeps those of a file that is replaced.
    @discardableResult
    package func write(to path: String, mode: UInt32? = nil, observer: (Data) async throws -> Void) async throws
        -> Int64
    {
        try DownloadRecord.checkDestination(path)
        do {
            var file = try AtomicFile(destination: path, mode: mode)
            // A file of another mode than new ones may be given theirs.
            if mode == nil, let path = file.linkablePath { await willBeWritten(to: path) }
            for try await chunk in self {
                try file.write(chunk.bytes)
                try await observer(chunk)
            }
            let size = file.size
            try file.commit()
            return size
        } catch let error as SystemError {
            throw SessionError.file(path, error)
        }
    }
}
