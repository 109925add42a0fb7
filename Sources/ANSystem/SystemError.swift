// SPDX-License-Identifier: MIT

import Glibc

/// A failed system call: its name and the `errno` that it left.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the call, such as `open`.
    public let call: String
    /// The value of `errno`, as in errno(3).
    public let code: Int32

    /// Creates an error for `call` with an explicit code.
    public init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// Creates an error for `call` from the calling thread's `errno`.
    public static func last(_ call: String) -> SystemError {
        SystemError(call: call, code: errno)
    }

    /// What it comes down to, where files are concerned.
    public var fileReason: FileReason {
        switch code {
        case ENOSPC, EDQUOT, EFBIG: .noSpace
        case EACCES, EPERM, EROFS: .notPermitted
        case EEXIST: .exists
        case ENOENT, ENOTDIR: .missing
        case EISDIR: .isFolder
        case EXDEV: .otherFileSystem
        case EWOULDBLOCK: .inUse
        default: .other
        }
    }

    /// What goes wrong with files.
    public enum FileReason: Hashable, Sendable {
        /// The disk, the user's part of it, or the largest file that it takes is full.
        case noSpace
        /// This user may not, or the disk can only be read.
        case notPermitted
        /// There is a file already.
        case exists
        /// There is no such file, or a folder on the way to it is missing or none.
        case missing
        /// There is a folder under this name.
        case isFolder
        /// It is on another file system.
        case otherFileSystem
        /// Another writer has it.
        case inUse
        /// Another reason.
        case other
    }

    /// There is a file already.
    public static let exists = SystemError(call: "open", code: EEXIST)
    /// There is no such file.
    public static let missing = SystemError(call: "open", code: ENOENT)

    /// The call, the system's message and the number, such as `open: No such file or directory (errno 2)`.
    public var description: String {
        "\(call): \(Self.message(for: code)) (errno \(code))"
    }

    /// The system's message for an `errno`, as in strerror(3).
    public static func message(for code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress, unsafe strerror_r(code, start, buffer.count) == 0 else {
                return "unknown error"
            }
            return unsafe String(cString: start)
        }
    }
}
