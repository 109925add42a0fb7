// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that ignores the body, available as `.empty`.
public struct EmptyResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted.
    public var validation: ResponseValidation

    /// Creates a serializer, by default for any media type and the successful statuses.
    package init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the value for every response.
    public func serialize(_ head: ResponseHead, _ body: Data) -> EmptyResponse {
        EmptyResponse()
    }
}
