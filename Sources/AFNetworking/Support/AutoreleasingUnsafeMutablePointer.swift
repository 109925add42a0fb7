// SPDX-License-Identifier: MIT

/// A place for a second result, under the name that Objective-C's out-parameters have in Swift.
///
/// It is no pointer: nothing can go wrong with it. Where a method takes one, `nil` and `&variable` work too.
public final class AutoreleasingUnsafeMutablePointer<Pointee> {
    /// What is in the place.
    public var pointee: Pointee

    /// Creates a place with a value in it.
    public init(_ pointee: Pointee) {
        self.pointee = pointee
    }
}

/// A place for an error; nil where the caller does not want to know.
public typealias NSErrorPointer = AutoreleasingUnsafeMutablePointer<NSError?>?

/// Runs `body` with a place for an error, and puts that into a variable afterwards.
func withErrorPointer<Result>(_ error: inout NSError?, _ body: (NSErrorPointer) -> Result) -> Result {
    let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(error)
    defer { error = pointer.pointee }
    return body(pointer)
}

/// Runs `body` with a place for an error, and throws what is in it afterwards.
func throwingError<Result>(_ body: (NSErrorPointer) -> Result) throws -> Result {
    let pointer = AutoreleasingUnsafeMutablePointer<NSError?>(nil)
    let result = body(pointer)
    if let error = pointer.pointee { throw error }
    return result
}
