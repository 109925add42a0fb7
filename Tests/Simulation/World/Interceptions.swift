// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import AsyncNetworking
import AsyncNetworkingTesting
import FoundationEssentials
import HTTPTypes

/// A behaviour of a program's interceptor.
enum Interception: String, CaseIterable, Sendable {
    /// Returns the response of the next step; to a request that it creates anew, if that opens a WebSocket connection.
    case observe
    /// Adds 1 to each byte of the body of a successful response.
    case transform
    /// Sends each request twice, one after the other.
    case repeatAlways
    /// Sends a request again if it fails or is answered with an error of the server.
    case repeatFailure
    /// Answers requests for some resources itself.
    case answer
    /// Sends a request twice at the same time, and returns one of the responses.
    case concurrent
    /// Makes another request with the session.
    case session
}

/// The interceptors of a program.
struct ProgramInterceptor: Interceptor {
    let kind: Interception
    /// The place of the interceptor, for the names of what it sends.
    let place: Int
    let ledger: Ledger
    let session: SessionReference

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        ledger.cover("interceptor.\(kind)")
        // A response that is not whole is not changed.
        let isStream = request.webSocketOptions != nil || request.headers[.accept] == "text/event-stream"
        switch kind {
        case .observe:
            guard request.webSocketOptions != nil else { return try await next(request) }
            var other = Request(url: request.url, headers: request.headers)
            other[RequestFacts.self] = request[RequestFacts.self]
            (other.retryPolicy, other.cachePolicy) = (request.retryPolicy, request.cachePolicy)
            return try await next(other)
        case .transform where isStream, .answer where isStream:
            return try await next(request)
        case .transform: return Self.transformed(try await next(request))
        case .repeatAlways:
            guard request.body.isReplayable else { return try await next(request) }
            if let first = try? await send(request, 0, next) {
                // Not all of the first response is read.
                var iterator = first.body.makeAsyncIterator()
                _ = try? await iterator.next()
            }
            try Task.checkCancellation()
            forget(request, 0)
            return try await send(request, 1, next)
        case .repeatFailure:
            guard request.body.isReplayable else { return try await next(request) }
            do {
                let response = try await send(request, 0, next)
                guard response.head.status.code >= 500 else { return response }
            } catch {
                try Task.checkCancellation()
            }
            forget(request, 0)
            return try await send(request, 1, next)
        case .answer:
            guard request.url.path.hasSuffix("/3"), request.method == .get else { return try await next(request) }
            let head = ResponseHead(status: .ok, headers: [.answered: "1"], url: request.url)
            return OpenResponse(head: head, body: ResponseBody(Self.answer))
        case .concurrent:
            guard request.body.isReplayable else { return try await next(request) }
            return try await sendTwice(request, next)
        case .session:
            if request.call < 1_000, let session = session.value {
                var other = Request(url: Resource.root(of: "c.test").appending(path: "r/1"))
                other.call = ledger.nestedCall(of: request.call)
                other.partition = request.partition
                _ = try? await session.data(for: other)
                try Task.checkCancellation()
            }
            return try await next(request)
        }
    }

    /// The body of the responses that an interceptor makes.
    static let answer = Data("An interceptor has answered.".utf8)

    /// Sends a request with the number of its repetition, by which the oracles know that the program repeats it.
    private func send(_ request: Request, _ number: Int, _ next: Chain) async throws -> OpenResponse {
        var request = request
        request.sequence = name(request, number)
        return try await next(request)
    }

    private func name(_ request: Request, _ number: Int) -> String {
        "\(request.sequence)/\(place)\(number)"
    }

    private func forget(_ request: Request, _ number: Int) {
        ledger.forget(call: request.call, within: name(request, number))
    }

    private func sendTwice(_ request: Request, _ next: Chain) async throws -> OpenResponse {
        try await withThrowingTaskGroup(of: (Int, Result<OpenResponse, any Error>).self) { group in
            for number in 0...1 {
                group.addTask {
                    do {
                        return (number, .success(try await send(request, number, next)))
                    } catch {
                        return (number, .failure(error))
                    }
                }
            }
            var results: [(Int, Result<OpenResponse, any Error>)] = []
            for try await result in group { results.append(result) }
            try Task.checkCancellation()
            let chosen = results.first { if case .success = $0.1 { true } else { false } } ?? results[0]
            forget(request, 1 - chosen.0)
            return try chosen.1.get()
        }
    }

    // MARK: Transformed bodies

    private static func transformed(_ response: OpenResponse) -> OpenResponse {
        guard response.head.status == .ok else { return response }
        var response = response
        let count = response.head.headers[.transformed].flatMap { Int($0) } ?? 0
        response.head.headers[.transformed] = "\(count + 1)"
        response.body = response.body.transforming { Data($0.map { $0 &+ 1 }) }
        return response
    }

    /// Returns the bytes as they were before interceptors have transformed them.
    static func original(_ data: Data, _ head: ResponseHead) -> Data {
        guard let count = head.headers[.transformed].flatMap({ UInt8($0) }), count > 0 else { return data }
        return Data(data.map { $0 &- count })
    }
}

/// Names the second of two requests that `Hedging` sends at a time, so that each has oracles of its own.
struct LaneInterceptor: Interceptor {
    static let second = "/second"
    private let open = Lock<Set<String>>([])

    func intercept(_ request: Request, next: Chain) async throws -> OpenResponse {
        let name = "\(request.call) \(request.sequence) \(request.url)"
        guard request.call > 0, !open.withLock({ $0.insert(name).inserted }) else {
            defer { open.withLock { _ = $0.remove(name) } }
            return try await next(request)
        }
        var request = request
        if request.call > 0 { request.sequence += Self.second }
        return try await next(request)
    }
}

/// The session of an interceptor, which does not keep it.
final class SessionReference: Sendable {
    private let reference = Lock(Weak())

    private struct Weak: Sendable {
        weak var session: SessionManager?
    }

    var value: SessionManager? { reference.withLock { $0.session } }

    func set(_ session: SessionManager) {
        reference.withLock { $0.session = session }
    }
}
