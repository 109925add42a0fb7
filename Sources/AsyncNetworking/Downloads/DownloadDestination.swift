// SPDX-License-Identifier: MIT

/// The destination of a download: a path, or a closure that chooses one.
///
/// A string literal is the path of a file:
///
/// ```swift
/// let download = await api.download("images/disk.iso", to: "disk.iso")
/// ```
///
/// The bytes are written to a temporary file, whose name ends with `.part`, and which is moved to its final path
/// atomically when it is complete. It is in the directory of the destination or, if a closure chooses that, in a
/// directory for temporary files; a download that is resumed continues the ``ResumeData/partialFile``. A device or a
/// pipe at a given path is written directly. A response with a status outside of 200–299 is never written.
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
