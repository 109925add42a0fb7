// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import FoundationEssentials

/// The key of an image in an ``AutoPurgingImageCache``: what was requested, and what the program did with it.
public struct ImageCacheKey: Hashable, Sendable {
    private let url: URL
    private let headers: HTTPFields
    private let identifier: String?

    /// Creates a key.
    ///
    /// - Parameters:
    ///   - url: The URL of the image.
    ///   - headers: The header fields of the request: with other credentials, the image may be another one.
    ///   - identifier: Distinguishes images made from the same file, such as thumbnails; `nil`, the default, for the
    ///     image itself.
    public init(_ url: URL, headers: HTTPFields = [:], identifier: String? = nil) {
        self.url = url
        self.headers = headers
        self.identifier = identifier
    }

    /// Creates a key from a request, of which only the URL and the header fields count.
    ///
    /// - Parameters:
    ///   - request: The request for the image.
    ///   - identifier: Distinguishes images made from the same file; `nil`, the default, for the image itself.
    public init(_ request: Request, identifier: String? = nil) {
        self.init(request.url, headers: request.headers, identifier: identifier)
    }
}
