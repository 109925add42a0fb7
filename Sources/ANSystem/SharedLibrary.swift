// SPDX-License-Identifier: MIT

import Glibc

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
