// SPDX-License-Identifier: MIT

/// The value, rejection and failure of serializing a response. A response rejected because of its status can have a
/// value, such as an API's error document.
///
/// ``ResponseSerializer/outcome(of:_:)`` returns it.
///
/// | response | ``value`` | ``rejection`` | ``failure`` |
/// |---|---|---|---|
/// | accepted, and the body can be read | yes | | |
/// | accepted, and the body cannot be read | | | yes |
/// | accepted, and the body is missing, which the serializer permits | | | |
/// | rejected because of the status, and the body can be read | yes | yes | |
/// | rejected because of the status, and the body cannot be read | | yes | yes |
/// | rejected because of the status, and the body is missing, which the serializer permits | | yes | |
/// | rejected because of the media type | | yes | |
///
/// The outcome of a ``DataResponseSerializer`` has a value in all cases: the body. That of an
/// ``EmptyResponseSerializer`` has its only value for any body, unless the media type is rejected, and that of an
/// ``OptionalResponseSerializer`` the value `nil` for a missing body that its base permits.
///
/// The outcome of a ``CompoundResponseSerializer`` is a rejection alone if its own validation rejects the response;
/// otherwise it is the outcome of the first child that has a value and accepts the media type. Without such a child, it is
/// empty if a child accepts the response and permits its missing body; if not, ``failure`` is
/// ``SerializationError/compound(_:)`` and ``rejection`` is `nil`, even if the children rejected the status.
package struct SerializationOutcome<Value: Sendable>: Sendable {
    /// The value read from the body; `nil` if the body was not read because of its media type, could not be read, or is
    /// missing and the serializer permits that.
    package var value: Value?
    /// The rejection of the response; `nil` if it was accepted.
    package var rejection: Rejection?
    /// The error of reading the body; `nil` if the body was read, was not read because of its media type, or is missing
    /// and the serializer permits that.
    package var failure: (any Error)?

    /// Creates an outcome, by default an empty one.
    package init(value: Value? = nil, rejection: Rejection? = nil, failure: (any Error)? = nil) {
        self.value = value
        self.rejection = rejection
        self.failure = failure
    }

    /// The error to report: ``SerializationError/rejected(_:)`` for a rejection, or else the ``failure``; `nil` if
    /// there was neither.
    package var error: (any Error)? {
        rejection.map(SerializationError.rejected) ?? failure
    }
}
