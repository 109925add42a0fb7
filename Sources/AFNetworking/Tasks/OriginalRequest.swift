// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

/// The request that a task was made with.
enum OriginalRequest: Sendable {
    /// One of Foundation's.
    case given(URLRequest)
    /// What a serializer of this module's has made for the core. Foundation's request takes longer to make than all else
    /// that a verb does, and is made when somebody asks for it.
    case made(MadeRequest)

    /// The request as Foundation has it.
    var urlRequest: URLRequest {
        switch self {
        case .given(let request): request
        case .made(let made): made.urlRequest
        }
    }

    var url: URL? {
        switch self {
        case .given(let request): request.url
        case .made(let made): made.url
        }
    }

    /// How long nothing may move, in seconds; nil where the request was told nothing.
    var timeoutInterval: TimeInterval? {
        switch self {
        // This is what requests have that were told nothing.
        case .given(let request): request.timeoutInterval == 60 ? nil : request.timeoutInterval
        case .made(let made): made.wishes.timeoutInterval
        }
    }

    /// Puts what is to be sent into a request of the core's, for a driver that is asked for another stream where the body has
    /// to be sent again.
    func fill(_ request: inout Request, for driver: TaskDriver) throws(SessionError) {
        switch self {
        case .given(let given):
            if given.httpBodyStream == nil {
                try request.take(given)
            } else {
                try request.take(given) { [weak driver] in await driver?.newBodyStream() ?? Handover(nil) }
            }
            request.wish(given.cachePolicy, handlesCookies: given.httpShouldHandleCookies)
        case .made(let made):
            request.method = made.method
            request.url = made.url
            request.headers = made.headers
            request.body = made.body.map(RequestBody.bytes) ?? .none
            request.wish(
                made.wishes.cachePolicy ?? .useProtocolCachePolicy, handlesCookies: made.wishes.handlesCookies ?? true)
        }
    }
}

/// A request without a stream, as the core sends it.
struct MadeRequest: Sendable {
    let method: HTTPRequest.Method
    let url: URL
    let headers: HTTPFields
    let body: Data?
    let wishes: RequestWishes

    fileprivate var urlRequest: URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = method.rawValue
        request.allHTTPHeaderFields = headers.dictionary
        request.httpBody = body
        wishes.apply(to: &request)
        return request
    }
}

extension Request {
    fileprivate mutating func wish(_ policy: NSURLRequest.CachePolicy, handlesCookies isHandling: Bool) {
        if policy != .useProtocolCachePolicy { cachePolicy = CachePolicy(policy) }
        if !isHandling { handlesCookies = false }
    }
}
