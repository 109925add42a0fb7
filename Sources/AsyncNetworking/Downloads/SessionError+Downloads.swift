// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
import FoundationEssentials

// What can go wrong with a download besides its transfer.

extension SessionError {
    /// What went wrong with a file.
    public struct FileProblem: Hashable, Sendable {
        /// The file's path.
        public var path: String
        /// The system call that failed.
        public var call: String
        /// The value of errno.
        public var errno: Int32
        /// The system's words.
        public var message: String

        /// Creates a description of a failure, as tests of error handling need it.
        public init(path: String, call: String, errno: Int32, message: String) {
            self.path = path
            self.call = call
            self.errno = errno
            self.message = message
        }

        init(path: String, _ error: SystemError) {
            self.init(path: path, call: error.call, errno: error.code, message: SystemError.message(for: error.code))
        }

        /// What it comes down to.
        public var reason: Reason { Reason(SystemError(call: call, code: errno).fileReason) }

        /// What goes wrong with files, in the words of a program that has to decide what to do.
        @nonexhaustive
        public enum Reason: Hashable, Sendable {
            /// The disk, the user's part of it, or the largest file that it takes is full.
            case noSpace
            /// This user may not, or the disk can only be read.
            case notPermitted
            /// There is a file already, and it is not to be replaced.
            case exists
            /// A folder on the way is missing, or is none.
            case missingFolder
            /// There is a folder under this name.
            case isFolder
            /// It is on another file system.
            case otherFileSystem
            /// Another download is writing it.
            case inUse
            /// Another reason; `errno` says which.
            case other

            init(_ reason: SystemError.FileReason) {
                self =
                    switch reason {
                    case .noSpace: .noSpace
                    case .notPermitted: .notPermitted
                    case .exists: .exists
                    case .missing: .missingFolder
                    case .isFolder: .isFolder
                    case .otherFileSystem: .otherFileSystem
                    case .inUse: .inUse
                    case .other: .other
                    }
            }
        }
    }

    /// Why a download could not be continued.
    public enum ResumeProblem: Hashable, Sendable {
        /// The resource is another one, or another version, than the one that the bytes are of.
        case changed
        /// The server has sent all of it, though it was asked for the rest.
        case rangesNotSupported
        /// The server has sent another range than it was asked for, and said so in these words, if any.
        case wrongRange(String?)
        /// Nothing tells which version the bytes are of: the server has sent no strong validator, or the request is none
        /// that can ask for a range.
        case noValidator
        /// The partial file, at this path, is missing or too short.
        case partialFile(String)
    }

    /// A digest that is not the one that it must be.
    public struct DigestMismatch: Hashable, Sendable {
        /// What it must be.
        public var expected: ContentDigest
        /// What it is.
        public var found: ContentDigest

        /// Creates a description of a failure, as tests of error handling need it.
        public init(expected: ContentDigest, found: ContentDigest) {
            self.expected = expected
            self.found = found
        }
    }

    /// What it takes to go on with the download that has failed; nil where nothing has come, or nobody can go on with it.
    public var resumeData: ResumeData? {
        if case .interrupted(_, let data) = self { data } else { nil }
    }

    /// The error itself; of an interruption, the reason.
    public var cause: SessionError {
        if case .interrupted(let error, _) = self { error } else { self }
    }

    static func file(_ path: String, _ error: SystemError) -> SessionError {
        .file(FileProblem(path: path, error))
    }
}

extension SessionError.FileProblem: CustomStringConvertible {
    /// The path, the system's words and its call.
    public var description: String { "\(path): \(message) (\(call))" }
}

extension SessionError.ResumeProblem: CustomStringConvertible {
    /// A sentence that says what happened.
    public var description: String {
        switch self {
        case .changed: "The download cannot be continued: the resource has changed."
        case .rangesNotSupported: "The download cannot be continued: the server sends only the whole."
        case .wrongRange(let text):
            "The download cannot be continued: the server sent a wrong range\(text.map { " (\($0))" } ?? "")."
        case .noValidator: "The download cannot be continued: nothing tells whether the resource is still the same."
        case .partialFile(let path): "The download cannot be continued: \(path) is missing or too short."
        }
    }
}

extension SessionError.DigestMismatch: CustomStringConvertible {
    /// A sentence with both digests.
    public var description: String {
        "The file is not what it should be: its digest is \(found), where \(expected) is expected."
    }
}
