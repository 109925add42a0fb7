// SPDX-License-Identifier: MIT

/// An error without a description, thrown by validation for an unacceptable media type if the response has no body.
///
/// Serializers then return neither an object nor an error, which completion handlers treat as success.
public struct AFUnnamedError: Error, Sendable {
    /// Creates the error.
    public init() {}
}

/// The result of validating a response.
struct ResponseValidity {
    var isValid = true
    /// The reason why the response is not valid; `nil` if it is valid, or for an ``AFUnnamedError``.
    var error: NSError?
    /// The response; `nil` if it is not an HTTP response.
    var description: ResponseDescription?

    /// Stores the error of an unreadable body, with the response in its user info and the validation
    /// error as its underlying error.
    func fail(_ failure: any Error, _ data: Data?, _ error: NSErrorPointer) {
        let failure = (failure as NSError).adding(description?.userInfo(data) ?? [:])
        error?.pointee = .combined(failure, underlying: error?.pointee)
    }

    /// Returns whether to skip reading the body, and stores the validation error, if any. The body is skipped if its
    /// media type is unacceptable, or if the response is invalid and the caller passed no error pointer.
    func stops(_ error: NSErrorPointer) -> Bool {
        guard !isValid else { return false }
        guard let error else { return true }
        if let failure = self.error { error.pointee = failure }
        return self.error?.contains(AFURLResponseSerializationErrorDomain, .cannotDecodeContentData) ?? false
    }
}
