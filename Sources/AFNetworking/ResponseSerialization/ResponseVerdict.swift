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
}
