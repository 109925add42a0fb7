// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

/// The properties of a response that validation reads.
struct ResponseDescription {
    let status: Int
    /// The media type without parameters, in lower case; `nil` if the response has none.
    let mediaType: String?
    let url: URL?
    /// Returns the response; called only when an error needs it.
    let response: () -> HTTPURLResponse?

    init(_ response: HTTPURLResponse) {
        status = response.statusCode
        mediaType = response.mimeType
        url = response.url
        self.response = { response }
    }

    init(_ head: ResponseHead, response: @escaping () -> HTTPURLResponse?) {
        status = head.status.code
        mediaType = head.mediaType
        url = head.url
        self.response = response
    }

    /// Whether the media type is one of `types`, compared without regard to case.
    func hasMediaType(among types: Set<String>) -> Bool {
        guard let mediaType else { return false }
        return types.contains(mediaType) || types.contains { $0.lowercased() == mediaType.lowercased() }
    }

    /// The reason phrase for the status code in lower case, as on Apple's platforms.
    var phrase: String { HTTPURLResponse.localizedString(forStatusCode: status).lowercased() }

    /// Returns an error about the response.
    func error(_ code: URLError.Code, _ text: String, _ data: Data?) -> NSError {
        NSError(
            domain: AFURLResponseSerializationErrorDomain, code: code.rawValue,
            userInfo: [NSLocalizedDescriptionKey: text]
        ).adding(userInfo(data))
    }

    /// Returns the user info of errors about the response.
    func userInfo(_ data: Data?) -> [String: Any] {
        var userInfo: [String: Any] = [:]
        userInfo[NSURLErrorFailingURLErrorKey] = url
        userInfo[AFNetworkingOperationFailingURLResponseErrorKey] = response()
        userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
        return userInfo
    }
}

/// A serializer that converts the bodies of responses, whereas others return them.
protocol BodyConverter: AFHTTPResponseSerializer {
    /// Returns the object for a body.
    func convert(_ data: Data?) throws -> Any?
}
