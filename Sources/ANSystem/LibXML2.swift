// SPDX-License-Identifier: MIT

import Glibc

/// The warnings of libxml2, which Foundation lets it print on standard error while it builds a tree, with lines of the
/// document.
package enum LibXML2 {
    private typealias Handler = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void
    private typealias SetHandler = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void
    private typealias Place = @convention(c) () -> UnsafeMutablePointer<UnsafeMutableRawPointer?>?

    // In a static executable, no function is found, and the warnings are printed.
    private static let setHandler = unsafe function("xmlSetStructuredErrorFunc", SetHandler.self)
    private static let handler = unsafe function("__xmlStructuredError", Place.self)
    private static let context = unsafe function("__xmlStructuredErrorContext", Place.self)
    private static func function<Function>(_ name: String, _ type: Function.Type) -> Function? {
        unsafe dlsym(nil, name).map { unsafe unsafeBitCast($0, to: type) }
    }

    /// Runs a closure during which libxml2 prints nothing in this thread. Its handler is one of the thread.
    package static func silently<Value>(_ body: () throws -> Value) rethrows -> Value {
        guard let setHandler = unsafe setHandler else { return try body() }
        let (formerContext, former) = unsafe (context?()?.pointee, handler?()?.pointee)
        let silence: Handler = { _, _ in }
        unsafe setHandler(nil, unsafeBitCast(silence, to: UnsafeMutableRawPointer.self))
        defer { unsafe setHandler(formerContext, former) }
        return try body()
    }
}
