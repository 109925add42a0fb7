// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Gives the body as it is; written `.data`.
public struct DataResponseSerializer: ResponseSerializer {
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
}
