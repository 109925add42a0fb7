// SPDX-License-Identifier: MIT

/// What validation throws where there is nothing to say, as for a wrong media type without a body.
///
/// Serializers take it for success: there is no object, and no error.
public struct AFUnnamedError: Error, Sendable {
    /// Creates the error.
    public init() {}
}

/// What validation says of a response.
struct ResponseVerdict {
    var isValid = true
    /// Why it is not valid; an invalid response may have none.
    var error: NSError?
    /// The response; `nil` if it is not one of HTTP.
    var facts: ResponseFacts?

    /// Puts the error of a body that cannot be read into its place, with the response, and with that of the validation below.
    func fail(_ failure: any Error, _ data: Data?, _ error: NSErrorPointer) {
        let failure = (failure as NSError).adding(facts?.userInfo(data) ?? [:])
        error?.pointee = .combined(failure, underlying: error?.pointee)
    }

    /// Whether the body is not to be looked at: its media type was wrong, or nobody would hear of the error.
    ///
    /// It puts the error of a failed validation into the place for it.
    func stops(_ error: NSErrorPointer) -> Bool {
        guard !isValid else { return false }
        guard let error else { return true }
        if let failure = self.error { error.pointee = failure }
        return self.error?.contains(AFURLResponseSerializationErrorDomain, .cannotDecodeContentData) ?? false
    }
}
