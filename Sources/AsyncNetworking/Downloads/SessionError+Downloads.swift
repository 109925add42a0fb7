// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import FoundationEssentials

// The errors of downloads other than those of transfers.

extension SessionError {
    /// The failure of a file operation: the path, the system's error, and its ``reason``.
    public struct FileFailure: Hashable, Sendable {
        /// The path of the file or directory; for a download whose path a closure chooses, possibly that of the
        /// directory for temporary files.
        public var path: String
        /// The system call that failed.
        package var call: String
        /// The value of `errno` after the system call that failed, such as `ENOENT`; see errno(3).
        public var errno: Int32
        /// The system's message for `errno`.
        package var message: String

        /// Creates the value, for testing error handling.
        package init(path: String, call: String, errno: Int32, message: String) {
            self.path = path
            self.call = call
            self.errno = errno
            self.message = message
        }

        init(path: String, _ error: SystemError) {
            self.init(path: path, call: error.call, errno: error.code, message: SystemError.message(for: error.code))
        }

        /// The reason, derived from ``errno``; `other` if it is not one that a program can act on.
        public var reason: Reason { Reason(SystemError(call: call, code: errno).fileReason) }

        /// The reason of a failed file operation, as far as a program can act on it.
        @nonexhaustive
        public enum Reason: Hashable, Sendable {
            /// The disk or the user's quota is full (`ENOSPC`, `EDQUOT`), or the file would exceed the maximum size of
            /// the file system or the process (`EFBIG`); see ``FileFailure/errno``.
            case noSpace
            /// The user lacks permission (`EACCES`, `EPERM`), or the file system is read-only (`EROFS`).
            case notPermitted
            /// The file already exists and must not be overwritten, or the path that a closure chose leads to a device,
            /// a pipe or a socket (`EEXIST`).
            case exists
            /// A directory of the path, or a file to be read, does not exist, or a part of the path is not a directory
            /// (`ENOENT`, `ENOTDIR`).
            case missingDirectory
            /// Another download, possibly of another process, is writing the file and has locked it (`EWOULDBLOCK`, see
            /// flock(2)).
            case inUse
            /// Another reason, such as a directory in place of the file; see ``FileFailure/errno``.
            case other

            init(_ reason: SystemError.FileReason) {
                self =
                    switch reason {
                    case .noSpace: .noSpace
                    case .notPermitted: .notPermitted
                    case .exists: .exists
                    case .missing: .missingDirectory
                    case .inUse: .inUse
                    case .isDirectory, .otherFileSystem, .other: .other
                    }
            }
        }
    }

    /// The reason why a download could not be resumed: the resource has changed, its version is unknown, the request is
    /// not a GET without `Range` or asks for another representation, the server sent no range or a wrong one, or the partial file is missing or too short.
    public struct ResumeFailure: Hashable, Sendable, CustomStringConvertible {
        /// A sentence with the reason, such as `The download cannot be resumed: the resource has changed.`
        public let description: String
    }

    /// The data to resume the failed download with; `nil` if this error is not ``interrupted(by:_:)``, for example
    /// because no bytes arrived or the download cannot be resumed.
    public var resumeData: ResumeData? {
        if case .interrupted(_, let data) = self { data } else { nil }
    }

    /// The reason why the download failed if this error is ``interrupted(by:_:)``, otherwise the error itself.
    public var cause: SessionError {
        if case .interrupted(let error, _) = self { error } else { self }
    }

    static func file(_ path: String, _ error: SystemError) -> SessionError {
        .file(FileFailure(path: path, error))
    }
}

extension SessionError.FileFailure: CustomStringConvertible {
    /// The path, the system's message and the system call, with advice if a directory is missing or the file is in use.
    public var description: String {
        let advice =
            switch reason {
            case .missingDirectory:
                "; create the directory, or for a download set createsIntermediateDirectories of its destination"
            case .inUse: "; another download, possibly in another process, is writing this file"
            default: ""
            }
        return "\(path): \(message) (\(call))\(advice)"
    }
}

extension SessionError.ResumeFailure {
    /// The resource has changed since the bytes were downloaded.
    package static let changed = Self("the resource has changed")
    /// The server sent the whole file instead of the requested range.
    package static let rangesNotSupported = Self("the server sends only the whole file")

    /// Creates the failure of a server that sent another range than the requested one, with its `Content-Range`, if
    /// any.
    package static func wrongRange(_ text: String?) -> Self {
        Self("the server sent a wrong range\(text.map { " (\($0))" } ?? "")")
    }

    /// The version of the bytes is unknown, because the server sent no strong validator, or the request is not a GET
    /// without `Range`.
    package static let noValidator = Self("without a strong validator it is unknown whether the resource has changed")

    /// The request selects another representation of the resource, for example by `Accept-Language`.
    package static let otherRequest = Self("the request asks for another representation of the resource")
    /// The server sends the file in too many small parts.
    package static let tooManyParts = Self("the server sends the file in too many parts")

    /// Creates the failure of a partial file that is missing or too short.
    package static func partialFile(_ path: String) -> Self { Self("\(path) is missing or too short") }

    private init(_ reason: String) {
        description = "The download cannot be resumed: \(reason.printable)."
    }
}
