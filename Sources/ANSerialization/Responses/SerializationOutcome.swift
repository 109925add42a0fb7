// SPDX-License-Identifier: MIT

/// The value, rejection and failure of serializing a response. A response rejected because of its status can have a
/// value, such as an API's error document.
///
/// | response | ``value`` | ``rejection`` | ``failure`` |
/// |---|---|---|---|
/// | accepted, and the body can be read | yes | | |
/// | accepted, and the body cannot be read | | | yes |
/// | accepted, and the body is missing | | | |
/// | rejected because of the status, and the body can be read | yes | yes | |
/// | rejected because of the status, and the body cannot be read | | yes | yes |
/// | rejected because of the status, and the body is missing | | yes | |
/// | rejected because of the media type | | yes | |
///
/// The outcome of a ``DataResponseSerializer`` has a value in all cases: the body.
public struct SerializationOutcome<Value: Sendable>: Sendable {
    /// The value read from the body; `nil` if it was not or could not be read.
    public var value: Value?
    /// The rejection of the response; `nil` if it was accepted.
    public var rejection: Rejection?
    /// The error of reading the body; `nil` if it was read, missing, or not attempted.
    public var failure: (any Error)?

    /// Creates an outcome, by default an empty one.
    package init(value: Value? = nil, rejection: Rejection? = nil, failure: (any Error)? = nil) {
        self.value = value
        self.rejection = rejection
        self.failure = failure
    }

    /// The error to report: the rejection, or else the failure; `nil` if there was no error.
    public var error: (any Error)? {
        rejection.map(SerializationError.rejected) ?? failure
    }
}
