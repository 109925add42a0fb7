// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that returns the body unchanged, available as `.data`.
public struct DataResponseSerializer: AdjustableResponseSerializer, OutcomeSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public var validation: ResponseValidation

    /// Creates a serializer.
    ///
    /// - Parameter validation: The statuses and media types that are accepted; by default 200 to 299 with any media
    ///   type.
    public init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the body unchanged, possibly empty; the status and media type are not checked here.
    public func serialize(_ head: ResponseHead, _ body: Data) -> Data {
        body
    }

    /// Returns the body, even if the response is rejected.
    package func ownOutcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Data> {
        SerializationOutcome(value: body, rejection: validation.rejection(of: head, body))
    }
}
