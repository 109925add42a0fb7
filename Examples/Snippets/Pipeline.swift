// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "The pipeline".

struct Stopwatch: Interceptor {
    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let start = ContinuousClock.now
        try await interception.proceed { head, body in
            print(interception.request, head.status, ContinuousClock.now - start)
            try await respond(head, body)
        }
    }
}

struct Language: Interceptor {
    let tag: String

    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var request = interception.request
        request.headers[.acceptLanguage] = tag
        try await interception.proceed(with: request, respond)
    }
}

struct Maintenance: Interceptor {
    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let head = ResponseHead(status: .serviceUnavailable, url: interception.request.url)
        try await respond(head, ResponseBody(Data("Back at noon.".utf8)))
    }
}

struct Mirror: Interceptor {
    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var isAnswered = false
        try await interception.proceed { head, body in
            guard head.status != .notFound else { return }
            isAnswered = true
            try await respond(head, body)
        }
        guard !isAnswered, let url = URL(string: interception.request.url.path, relativeTo: mirror) else { return }
        var request = interception.request
        request.url = url
        try await interception.proceed(with: request, respond)
    }

    private var mirror: URL? { URL(string: "https://mirror.example.org/") }
}

struct ByteCounter: Interceptor {
    func intercept(
        _ interception: Interception, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await interception.proceed { head, body in
            try await respond(
                head,
                body.transforming { chunk in
                    print(chunk.count, "bytes of", interception.request.url)
                    return chunk
                })
        }
    }
}

func useInterceptors() -> SessionManager {
    let api = SessionManager {
        $0.interceptors = [Stopwatch(), Language(tag: "de")]
        $0.attemptInterceptors = [ByteCounter()]
    }
    return api
}

enum Purpose: RequestAttribute {
    static let defaultValue = "browsing"
}

func setAttribute(_ api: SessionManager, url: URL) async throws {
    var request = Request(url: url)
    request[Purpose.self] = "prefetching"
    _ = try await api.data(for: request)
}

struct RequestLog: EventMonitor {
    func receive(_ event: RequestEvent, of task: AnyTransferTask) {
        print(task, event)
    }
}

func useMonitor() -> SessionManager {
    let api = SessionManager {
        $0.eventMonitors = [RequestLog()]
    }
    return api
}

func redirectsOfOneRequest(_ api: SessionManager, url: URL) async throws {
    var request = Request(url: url)
    request.redirectPolicy = api.configuration.redirectPolicy.with { $0.maximum = 1 }
    try await api.withResponse(for: request) { head, _ in
        for redirect in head.redirectHistory { print(redirect.status, redirect.url) }
    }
}

func fetchOnlyFromThePublicInternet() -> SessionManager {
    let fetcher = SessionManager {
        $0.transfer.connection.addresses = .publicOnly(except: ["10.20.0.0/16"])
        $0.proxy = .none
    }
    return fetcher
}

func reload(_ api: SessionManager, url: URL) async throws -> Data {
    var request = Request(url: url)
    request.cachePolicy = .reload
    return try await api.data(for: request).value
}
