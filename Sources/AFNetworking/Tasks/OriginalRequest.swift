// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

/// The request with which a task was created.
enum OriginalRequest: Sendable {
    /// A Foundation request.
    case given(URLRequest)
    /// A request that a serializer of this module created for the core. Its Foundation form, whose creation takes
    /// longer than the rest of a verb, is created on demand.
    case made(SerializedRequest)

    /// The request as a Foundation request.
    var urlRequest: URLRequest {
        switch self {
        case .given(let request): request
        case .made(let made): made.urlRequest
        }
    }

    var url: URL? {
        switch self {
        case .given(let request): request.url
        case .made(let made): made.request.url
        }
    }

    /// The idle timeout in seconds; `nil` if it was not set.
    var timeoutInterval: TimeInterval? {
        switch self {
        // 60 is the default of `URLRequest`.
        case .given(let request): request.timeoutInterval == 60 ? nil : request.timeoutInterval
        case .made(let made): made.settings.timeoutInterval
        }
    }

    /// Copies the request to a core request. The driver is asked for a new stream if the body must be sent again, unless
    /// no block or override could return one.
    func fill(_ request: inout Request, for driver: TaskDriver) throws(SessionError) {
        switch self {
        case .given(let given):
            if given.httpBodyStream == nil || driver.manager?.decides(\.needNewBodyStream) != true {
                try request.take(given)
            } else {
                try request.take(given) { [weak driver] in await driver?.newBodyStream() ?? UncheckedSendable(nil) }
            }
            request.apply(given.cachePolicy, handlesCookies: given.httpShouldHandleCookies)
        case .made(let made):
            request.method = made.request.method
            request.url = made.request.url
            request.headers = made.request.headers
            request.body = made.request.body
            request.apply(
                made.settings.cachePolicy ?? .useProtocolCachePolicy,
                handlesCookies: made.settings.handlesCookies ?? true)
        }
    }
}

/// A request without a stream, in the form that the core sends.
struct SerializedRequest: Sendable {
    let request: Request
    let settings: RequestSettings

    fileprivate var urlRequest: URLRequest {
        var result = URLRequest(request, basedOn: URLRequest(url: request.url))
        settings.apply(to: &result)
        return result
    }
}

extension Request {
    /// Sets the cache policy and whether cookies are handled, where they differ from the defaults of Foundation.
    mutating func apply(_ policy: NSURLRequest.CachePolicy, handlesCookies isHandling: Bool) {
        cachePolicy = policy == .useProtocolCachePolicy ? nil : CachePolicy(policy)
        handlesCookies = isHandling ? nil : false
    }
}
