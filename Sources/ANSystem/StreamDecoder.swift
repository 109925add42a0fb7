// SPDX-License-Identifier: MIT

import Glibc

/// An incremental decoder of a compressed stream that is not bound to a thread.
package protocol StreamDecoder: ~Copyable, Sendable {
    /// Decodes as much of the input as the output has room for.
    ///
    /// A step may consume only part of the input. Given input and room, it makes progress unless the stream has ended.
    /// After a step that filled the output, there may be more to write even without further input.
    ///
    /// - Throws: `EBADMSG` for malformed input, `ENOMEM` if memory is exhausted. After an error the decoder must not be
    ///   used any more.
    mutating func step(
        _ input: borrowing RawSpan, into output: inout MutableRawSpan
    ) throws(SystemError) -> DecodingStep
}

/// The result of one step of a ``StreamDecoder``.
package struct DecodingStep: Hashable, Sendable {
    /// The number of bytes taken from the input.
    package var consumed = 0
    /// The number of bytes written to the output.
    package var produced = 0
    /// Whether the input so far is a complete stream.
    package var isComplete = false

    /// Creates a result, by default for a step without effect.
    package init(consumed: Int = 0, produced: Int = 0, isComplete: Bool = false) {
        self.consumed = consumed
        self.produced = produced
        self.isComplete = isComplete
    }
}

/// A shared library, loaded on demand and not unloaded before the process exits. See dlopen(3).
@safe struct SharedLibrary {
    private let handle: UnsafeMutableRawPointer

    /// Loads a library by its soname, such as `libzstd.so.1`; `nil` if it is not installed.
    init?(_ name: String) {
        guard let handle = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        unsafe self.handle = handle
    }

    /// Returns the function with a name; `nil` if the library does not export it.
    ///
    /// `Function` must be the C function pointer type declared by the library; it is not checked.
    @unsafe func function<Function>(_ name: String, as type: Function.Type = Function.self) -> Function? {
        guard let symbol = unsafe dlsym(handle, name) else { return nil }
        return unsafe unsafeBitCast(symbol, to: type)
    }
}
