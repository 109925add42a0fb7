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

/// The result of validating a response.
struct ResponseValidity {
    /// The response; `nil` if it is not an HTTP response.
    let description: ResponseDescription?
    var isValid = true
    /// The reason why the response is not valid; `nil` if it is valid, or for an ``AFUnnamedError``.
    var error: NSError?

    /// Returns the object that `parse` returns for a body, and stores the validation error and the error of `parse`.
    ///
    /// The body is not parsed if its media type is unacceptable, or if the response is invalid and the caller passed no
    /// error pointer.
    func object(of data: Data?, _ pointer: NSErrorPointer, _ parse: (Data?) throws -> Any?) -> Any? {
        if !isValid {
            guard let pointer else { return nil }
            if let error { pointer.pointee = error }
            if error?.contains(AFURLResponseSerializationErrorDomain, .cannotDecodeContentData) == true { return nil }
        }
        do {
            return try parse(data)
        } catch {
            let failure = (error as? SerializationError).map(NSError.init(parsing:)) ?? error as NSError
            let described = failure.adding(description?.userInfo(data) ?? [:])
            pointer?.pointee = .combined(described, underlying: pointer?.pointee)
            return nil
        }
    }
}
