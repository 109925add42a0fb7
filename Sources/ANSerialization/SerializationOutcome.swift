// SPDX-License-Identifier: MIT

/// All that a serializer can say about a response: the value is there also where the response was rejected for its status,
/// as an API's error document is.
///
/// | the response | ``value`` | ``rejection`` | ``failure`` |
/// |---|---|---|---|
/// | passes, and its body can be read | yes | | |
/// | passes, and its body cannot be read | | | why |
/// | passes, and there is no body to read | | | |
/// | is rejected for its status, and its body can be read | yes | yes | |
/// | is rejected for its status, and its body cannot be read | | yes | why |
/// | is rejected for its status, and there is no body to read | | yes | |
/// | is rejected for its media type | | yes | |
public struct SerializationOutcome<Value: Sendable>: Sendable {
    /// What was made of the body.
    public var value: Value?
    /// Why the response was not taken.
    public var rejection: Rejection?
    /// Why no value could be made of the body.
    public var failure: (any Error)?

    /// Creates an outcome.
    public init(value: Value? = nil, rejection: Rejection? = nil, failure: (any Error)? = nil) {
        self.value = value
        self.rejection = rejection
        self.failure = failure
    }

    /// The error that a caller is told first: the rejection, else what is wrong with the body.
    public var error: (any Error)? {
        rejection.map(SerializationError.rejected) ?? failure
    }
}
