// SPDX-License-Identifier: MIT

/// A reference to an out-parameter, with the name that such parameters of Objective-C methods have in Swift on Apple's
/// platforms.
///
/// It is an object, not a pointer, and is memory-safe. Methods that take one also accept `nil` and `&variable`.
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
