// SPDX-License-Identifier: MIT

/// What validation looks at.
struct ResponseFacts {
    let status: Int
    /// Without parameters, in lower case.
    let mediaType: String?
    let url: URL?
    /// The response itself, made when an error needs it.
    let response: () -> HTTPURLResponse?

    init(_ response: HTTPURLResponse) {
        status = response.statusCode
        mediaType = response.mimeType
        url = response.url
        self.response = { response }
    }

    /// Whether the media type is one of these, in any case.
    func hasMediaType(among types: Set<String>) -> Bool {
        guard let mediaType else { return false }
        return types.contains(mediaType) || types.contains { $0.lowercased() == mediaType.lowercased() }
    }

    /// The words for the status in lower case, as Apple's systems have them.
    var phrase: String { HTTPURLResponse.localizedString(forStatusCode: status).lowercased() }

    /// An error about the response.
    func error(_ code: URLError.Code, _ text: String, _ data: Data?) -> NSError {
        NSError(
            domain: AFURLResponseSerializationErrorDomain, code: code.rawValue,
            userInfo: [NSLocalizedDescriptionKey: text]
        ).adding(userInfo(data))
    }

    /// What errors about the response have in their user info.
    func userInfo(_ data: Data?) -> [String: Any] {
        var userInfo: [String: Any] = [:]
        userInfo[NSURLErrorFailingURLErrorKey] = url
        userInfo[AFNetworkingOperationFailingURLResponseErrorKey] = response()
        userInfo[AFNetworkingOperationFailingURLResponseDataErrorKey] = data
        return userInfo
    }
}
