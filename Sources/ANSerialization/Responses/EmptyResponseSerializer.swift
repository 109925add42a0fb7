// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that ignores the body, whether or not there is one, for requests whose result is the status; available
/// as `.empty`.
///
/// A session nevertheless receives the body, within the limit for the size of collected bodies.
public struct EmptyResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public var validation: ResponseValidation

    /// Creates a serializer, by default for any media type and the successful statuses.
    package init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the only value of ``EmptyResponse``, for every response; the status and media type are not checked here.
    public func serialize(_ head: ResponseHead, _ body: Data) -> EmptyResponse {
        EmptyResponse()
    }
}
