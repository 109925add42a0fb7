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
