// SPDX-License-Identifier: MIT

// Foundation functions that take pointers. This is the only file of the module with the keyword `unsafe`.

extension InputStream {
    /// Reads at most `count` bytes; `nil` at the end. May block.
    func readChunk(upTo count: Int) throws -> Data? {
        if streamStatus == .notOpen { open() }
        var bytes = [UInt8](repeating: 0, count: count)
        // The array has `count` elements.
        let length = unsafe read(&bytes, maxLength: count)
        guard length >= 0 else { throw streamError ?? CocoaError(.fileReadUnknown) }
        return length == 0 ? nil : Data(bytes.prefix(length))
    }
}

extension PropertyListSerialization {
    /// Reads a property list of any format.
    static func propertyList(from data: Data, options: ReadOptions) throws -> Any {
        try unsafe propertyList(from: data, options: options, format: nil)
    }
}

/// A reference through which a method or block returns an additional value, by setting ``pointee``.
///
/// It replaces the pointer type of the same name on Apple's platforms, but is an object and memory-safe. Methods with
/// an `error:` parameter of this type can also be called with `nil` or `&error`.
public final class AutoreleasingUnsafeMutablePointer<Pointee> {
    /// The referenced value, which the method that takes the reference may set. Not synchronized.
    public var pointee: Pointee

    /// Creates a reference with an initial value.
    public init(_ pointee: Pointee) {
        self.pointee = pointee
    }
}

/// A reference to an error out-parameter; `nil` if the caller ignores the error.
public typealias NSErrorPointer = AutoreleasingUnsafeMutablePointer<NSError?>?

/// Calls `body` with an error out-parameter and copies its value to `error` afterwards.
func withErrorPointer<Result>(_ error: inout NSError?, _ body: (NSErrorPointer) -> Result) -> Result {
    let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(error)
    defer { error = pointer.pointee }
    return body(pointer)
}

/// Calls `body` with an error out-parameter and throws the error that it stores.
func throwingError<Result>(_ body: (NSErrorPointer) -> Result) throws -> Result {
    let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
    let result = body(pointer)
    if let error = pointer.pointee { throw error }
    return result
}
