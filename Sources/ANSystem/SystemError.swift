// SPDX-License-Identifier: MIT

import Glibc

/// A failed system call, or a failed function of zlib or another C library: its name and an `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the system call or C function, such as `open` or `inflate`.
    public let call: String
    /// The `errno` of the call, or the one that describes the failure of a function that sets none. See errno(3).
    public let code: Int32

    /// Creates an error for a call with an explicit `errno`.
    public init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// Returns an error for a call with the calling thread's `errno`, to be read before another call changes it.
    public static func last(_ call: String) -> SystemError {
        SystemError(call: call, code: errno)
    }

    /// The general reason for a failed file operation, according to ``code`` alone.
    public var fileReason: FileReason {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: .noSpace
        case EACCES, EPERM, EROFS: .notPermitted
        case EEXIST: .exists
        case ENOENT, ENOTDIR: .missing
        case EISDIR: .isDirectory
        case EXDEV: .otherFileSystem
        case EWOULDBLOCK: .inUse
        default: .other
        }
    }

    /// Whether the error says that there is no file at a path, or one of another kind or of another user: not that the system
    /// could not look, as for lack of descriptors.
    package var isAboutFile: Bool {
        [ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP, EACCES, EPERM, EISDIR, EINVAL, ENXIO].contains(code)
    }

    /// A general reason for a failed file operation.
    public enum FileReason: Hashable, Sendable {
        /// The disk or the user's quota is full, or the file is too large for the file system or the process (`ENOSPC`,
        /// `EDQUOT`, `EFBIG`).
        case noSpace
        /// The user lacks permission, or the file system is read-only (`EACCES`, `EPERM`, `EROFS`).
        case notPermitted
        /// The file exists already (`EEXIST`).
        case exists
        /// The file does not exist, or a directory on its path is missing or not a directory (`ENOENT`, `ENOTDIR`).
        case missing
        /// The path is a directory (`EISDIR`).
        case isDirectory
        /// The path is on another file system (`EXDEV`).
        case otherFileSystem
        /// Another writer has locked the file (`EWOULDBLOCK`).
        case inUse
        /// Any other reason.
        case other
    }

    /// The error for a file that exists already: `EEXIST` from `open`.
    public static let exists = SystemError(call: "open", code: EEXIST)
    /// The error for a directory in place of a file: `EISDIR` from `open`.
    package static let isDirectory = SystemError(call: "open", code: EISDIR)
    /// Whether a file or directory does not exist (`ENOENT`).
    package var isMissing: Bool { code == ENOENT }

    /// The error for a file that does not exist: `ENOENT` from `open`.
    public static let missing = SystemError(call: "open", code: ENOENT)

    /// The name of the call, the system's message and the `errno`, such as `open: No such file or directory (errno 2)`.
    public var description: String {
        "\(call): \(Self.message(for: code)) (errno \(code))"
    }

    /// Returns the system's message for an `errno`, in the language of the process's locale; `unknown error` if the
    /// system has none. See strerror_r(3).
    public static func message(for code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress, unsafe strerror_r(code, start, buffer.count) == 0 else {
                return "unknown error"
            }
            return unsafe String(cString: start)
        }
    }
}
