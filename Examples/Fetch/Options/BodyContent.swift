// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// What a request sends, and what follows from it for the rest of the request.
struct BodyContent: Sendable {
    /// The method, unless another one is asked for.
    var method = HTTPRequest.Method.get
    /// The body.
    var body = RequestBody.none
    /// Fields that the body brings along.
    var headers: HTTPFields = [:]
    /// The path of the file that is sent, where the server is told its name.
    var uploadName: String?

    /// The URL to send it to: one that ends with a slash gets the name of the file.
    func url(for url: URL) -> URL {
        guard let name = uploadName?.split(separator: "/").last, url.path(percentEncoded: true).hasSuffix("/") else {
            return url
        }
        return url.appending(path: name, directoryHint: .notDirectory)
    }
}
