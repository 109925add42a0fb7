// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import FoundationEssentials

/// The key of an image in an ``AutoPurgingImageCache``: the URL, the header fields of the request, and optionally an
/// identifier for a variant of the image, such as a thumbnail.
///
/// URLs are compared as text, including a fragment, and identifiers as text, where `nil` differs from an empty one. A
/// URL with a base URL differs from the same absolute URL without one. Header fields are compared regardless of the
/// case of their names and of the order of different names.
public struct ImageCacheKey: Hashable, Sendable {
    private let url: URL
    private let headers: HTTPFields
    private let identifier: String?

    /// Creates a key from its parts.
    ///
    /// - Parameters:
    ///   - url: The URL of the image.
    ///   - headers: The header fields of the request, without those that the session adds, but with the
    ///     `Accept: image/*` of a request that ``ImageDownloader`` makes for a URL; empty by default. With other
    ///     credentials, for example, the image may be another one.
    ///   - identifier: An identifier for a variant made from the same file, such as a thumbnail; `nil`, the default,
    ///     for the image itself.
    public init(_ url: URL, headers: HTTPFields = [:], identifier: String? = nil) {
        self.url = url
        self.headers = headers
        self.identifier = identifier
    }

    /// Creates a key from the URL and the header fields of a request.
    ///
    /// ``ImageDownloader`` adds images under this key, with the identifier that it was created with, but only those of
    /// GET requests without a body, trailers, options and attributes of their own, apart from a cache policy. The
    /// requests that a downloader or an ``ImageSlot`` makes for a URL have the header field `Accept: image/*`.
    ///
    /// - Parameters:
    ///   - request: The request for the image; its method, body, cache policy and options are not part of the key.
    ///   - identifier: An identifier for a variant made from the same file, such as a thumbnail; `nil`, the default,
    ///     for the image itself.
    public init(_ request: Request, identifier: String? = nil) {
        self.init(request.url, headers: request.headers, identifier: identifier)
    }
}
