// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// The body of a request and the properties of the request that follow from it.
struct BodyContent: Sendable {
    /// The method, unless another one is given.
    var method = HTTPRequest.Method.get
    /// The body.
    var body = RequestBody.none
    /// Header fields for the body.
    var headers: HTTPFields = [:]
    /// The path of an uploaded file whose name completes the URL; otherwise `nil`.
    var uploadName: String?

    /// Returns the URL for the upload: the name of the file is appended to a URL that ends with a slash.
    func url(for url: URL) -> URL {
        guard let name = uploadName?.split(separator: "/").last, url.path(percentEncoded: true).hasSuffix("/") else {
            return url
        }
        return url.appending(path: name, directoryHint: .notDirectory)
    }
}
