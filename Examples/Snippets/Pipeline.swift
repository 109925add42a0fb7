// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "The pipeline".

// snippet.interceptors
struct Stopwatch: Interceptor {
    func intercept(
        _ interception: Interception,
        respond: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let start = ContinuousClock.now
        try await interception.proceed { head, body in
            print(interception.request, head.status, ContinuousClock.now - start)
            try await respond(head, body)
        }
    }
}
// snippet.end

struct Language: Interceptor {
    let tag: String

    func intercept(
        _ interception: Interception,
        respond: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        // snippet.interceptors-2
        var request = interception.request
        request.headers[.acceptLanguage] = tag
        try await interception.proceed(with: request, respond)
        // snippet.end
    }
}

struct Maintenance: Interceptor {
    func intercept(
        _ interception: Interception,
        respond: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        // snippet.interceptors-3
        let head = ResponseHead(status: .serviceUnavailable, url: interception.request.url)
        try await respond(head, ResponseBody(Data("Back at noon.".utf8)))
        // snippet.end
    }
}

struct Mirror: Interceptor {
    func intercept(
        _ interception: Interception,
        respond: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        // snippet.interceptors-4
        var isAnswered = false
        try await interception.proceed { head, body in
            guard head.status != .notFound else { return }
            isAnswered = true
            try await respond(head, body)
        }
        // snippet.end
        guard !isAnswered, let url = URL(string: interception.request.url.path, relativeTo: mirror) else { return }
        var request = interception.request
        request.url = url
        try await interception.proceed(with: request, respond)
    }

    private var mirror: URL? { URL(string: "https://mirror.example.org/") }
}

struct ByteCounter: Interceptor {
    func intercept(
        _ interception: Interception,
        respond: nonisolated(nonsending) (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await interception.proceed { head, body in
            // snippet.interceptors-5
            try await respond(
                head,
                body.transforming { chunk in
                    print(chunk.count, "bytes of", interception.request.url)
                    return chunk
                })
            // snippet.end
        }
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
    func receive(_ event: RequestEvent, of task: AnyTransferTask) {
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
