// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Gives the body as it is; written `.data`.
public struct DataResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation

    /// Creates a serializer that takes any media type unless said otherwise.
    public init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the body.
    public func serialize(_ head: ResponseHead, _ body: Data) -> Data {
        body
    }

    /// The body, also of a response that was rejected.
    public func outcome(of head: ResponseHead, _ body: Data) -> SerializationOutcome<Data> {
        SerializationOutcome(value: body, rejection: validation.rejection(of: head, body))
    }
}
