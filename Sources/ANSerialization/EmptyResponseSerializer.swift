// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Ignores the body; written `.empty`.
public struct EmptyResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation

    /// Creates a serializer that takes any media type unless said otherwise.
    public init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the same value for every response.
    public func serialize(_ head: ResponseHead, _ body: Data) -> EmptyResponse {
        EmptyResponse()
    }
}
