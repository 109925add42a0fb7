// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

// The errors of downloads other than those of transfers.

extension SessionError {
    /// The failure of a file operation.
    public struct FileFailure: Hashable, Sendable {
        /// The path of the file.
        public var path: String
        /// The system call that failed.
        public var call: String
        /// The value of `errno`.
        public var errno: Int32
        /// The system's message for `errno`.
        public var message: String

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

        /// The reason, derived from the system call and `errno`.
        public var reason: Reason { Reason(SystemError(call: call, code: errno).fileReason) }

        /// The reason of a failed file operation, as far as a program can act on it.
        @nonexhaustive
        public enum Reason: Hashable, Sendable {
            /// The disk or the user's quota is full, or the file exceeds the maximum size.
            case noSpace
            /// The user lacks permission, or the file system is read-only.
            case notPermitted
            /// The file already exists and must not be overwritten.
            case exists
            /// A directory of the path does not exist or is not a directory.
            case missingDirectory
            /// The path is a directory.
            case isDirectory
            /// The path is on another file system.
            case otherFileSystem
            /// Another download is writing the file.
            case inUse
            /// Another reason, identified by `errno`.
            case other

            init(_ reason: SystemError.FileReason) {
                self =
                    switch reason {
                    case .noSpace: .noSpace
                    case .notPermitted: .notPermitted
                    case .exists: .exists
                    case .missing: .missingDirectory
                    case .isDirectory: .isDirectory
                    case .otherFileSystem: .otherFileSystem
                    case .inUse: .inUse
                    case .other: .other
                    }
            }
        }
    }

    /// The reason why a download could not be resumed.
    public enum ResumeFailure: Hashable, Sendable {
        /// The resource has changed since the bytes were downloaded.
        case changed
        /// The server sent the whole file instead of the requested range.
        case rangesNotSupported
        /// The server sent another range than the requested one; the associated value is its `Content-Range`, if any.
        case wrongRange(String?)
        /// The version of the bytes is unknown, because the server sent no strong validator, or the request is not a
        /// GET without `Range`.
        case noValidator
        /// The partial file at this path is missing or too short.
        case partialFile(String)
    }

    /// A digest that differs from the expected one.
    public struct DigestFailure: Hashable, Sendable {
        /// The expected digest.
        public var expected: ContentDigest
        /// The actual digest.
        public var found: ContentDigest

        /// Creates the value, for testing error handling.
        package init(expected: ContentDigest, found: ContentDigest) {
            self.expected = expected
            self.found = found
        }
    }

    /// The data to resume the failed download with; `nil` if no bytes arrived or the download cannot be resumed.
    public var resumeData: ResumeData? {
        if case .interrupted(_, let data) = self { data } else { nil }
    }

    /// The reason if this error is ``interrupted(by:_:)``, otherwise the error itself.
    public var cause: SessionError {
        if case .interrupted(let error, _) = self { error } else { self }
    }

    static func file(_ path: String, _ error: SystemError) -> SessionError {
        .file(FileFailure(path: path, error))
    }
}

extension SessionError.FileFailure: CustomStringConvertible {
    /// The path, the system's message and the system call.
    public var description: String { "\(path): \(message) (\(call))" }
}

extension SessionError.ResumeFailure: CustomStringConvertible {
    /// A sentence that says what happened.
    public var description: String {
        switch self {
        case .changed: "The download cannot be resumed: the resource has changed."
        case .rangesNotSupported: "The download cannot be resumed: the server sends only the whole file."
        case .wrongRange(let text):
            "The download cannot be resumed: the server sent a wrong range\(text.map { " (\($0))" } ?? "")."
        case .noValidator:
            "The download cannot be resumed: without a strong validator it is unknown whether the resource has changed."
        case .partialFile(let path): "The download cannot be resumed: \(path) is missing or too short."
        }
    }
}

extension SessionError.DigestFailure: CustomStringConvertible {
    /// A sentence with both digests.
    public var description: String {
        "The file's digest is \(found), but \(expected) is expected."
    }
}
