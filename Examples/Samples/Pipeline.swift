// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "The pipeline".

// snippet.interceptors
struct Stopwatch: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        let start = ContinuousClock.now
        let response = try await next(request)
        print(request, response.head.status, ContinuousClock.now - start)
        return response
    }
}
// snippet.end

struct Language: Interceptor {
    let tag: String

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        // snippet.interceptors-2
        var request = request
        request.headers[.acceptLanguage] = tag
        return try await next(request)
        // snippet.end
    }
}

struct Maintenance: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        // snippet.interceptors-3
        let head = ResponseHead(status: .serviceUnavailable, url: request.url)
        return OpenResponse(head: head, body: ResponseBody(Data("Back at noon.".utf8)))
        // snippet.end
    }
}

struct Mirror: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        // snippet.interceptors-4
        let response = try await next(request)
        guard request.method == .get, response.head.status == .notFound,
            var parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true)
        else { return response }
        // Only the server is another one, which gets no secrets; the path and the query stay as they are encoded.
        (parts.scheme, parts.host, parts.port) = ("https", "mirror.example.org", nil)
        (parts.user, parts.password) = (nil, nil)
        guard let url = parts.url else { return response }
        var request = request
        request.url = url
        let secrets = RedirectPolicy().sensitiveHeaders
        request.headers.removeAll { secrets.contains($0.name) }
        return try await next(request)
        // snippet.end
    }
}

struct ByteCounter: Interceptor {
    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        // snippet.interceptors-5
        var response = try await next(request)
        response.body = response.body.transforming { chunk in
            print(chunk.count, "bytes of", request.url)
            return chunk
        }
        return response
        // snippet.end
    }
}

func useInterceptors() -> SessionManager {
    // snippet.interceptors-6
    let api = SessionManager {
        $0.interceptors = [Stopwatch(), Language(tag: "de")]
        $0.attemptInterceptors = [ByteCounter()]
    }
    // snippet.end
    return api
}

// snippet.interceptors-7
enum Purpose: RequestAttribute {
    static let defaultValue = "browsing"
}
// snippet.end

func setAttribute(_ api: SessionManager, url: URL) async throws {
    var request = Request(url: url)
    // snippet.interceptors-8
    request[Purpose.self] = "prefetching"
    // snippet.end
    _ = try await api.data(for: request)
}

// snippet.events
struct RequestLog: EventMonitor {
    func receive(_ event: TaskEvent, of task: AnySessionTask) {
        print(task, event)
    }
}
// snippet.end

func useMonitor() -> SessionManager {
    let api = SessionManager {
        $0.eventMonitors = [RequestLog()]
    }
    return api
}

func redirectsOfOneRequest(_ api: SessionManager, url: URL) async throws {
    var request = Request(url: url)
    // snippet.redirects
    request.redirectPolicy = api.configuration.redirectPolicy.with { $0.maximum = 1 }
    try await api.withResponse(for: request) { head, _ in
        for redirect in head.redirectHistory { print(redirect.status, redirect.url) }
    }
    // snippet.end
}

func fetchOnlyFromThePublicInternet() -> SessionManager {
    // snippet.untrusted-urls
    let fetcher = SessionManager {
        $0.connection.addresses = .publicOnly(except: ["10.20.0.0/16"])
        $0.proxy = .none
    }
    // snippet.end
    return fetcher
}
