// SPDX-License-Identifier: MIT

import ANHTTP
import HTTPTypes

/// The way of a request, from the session's methods to the transport and back: one ordered list.
///
/// 1. The session's header fields and transfer options fill what the request leaves open.
/// 2. Redirects are followed, each as an exchange of its own.
/// 3. The transport performs one exchange.
struct Pipeline: Sendable {
    let transport: any Transport
    let headers: HTTPFields
    let redirects: RedirectPolicy

    /// Performs a request and runs `body` with the final response; the scope is that of ``ANHTTP/Transport``.
    func perform<Value: Sendable>(
        _ request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody, _ redirects: [ResponseHead]) async throws -> Value
    ) async throws -> Value {
        var request = request
        fillHeaders(of: &request)
        return try await followingRedirects(of: request, delivery: delivery, reporting: events, body: body)
    }

    private func fillHeaders(of request: inout Request) {
        let own = request.headers
        guard !own.isEmpty else { return request.headers = headers }
        for field in headers where !own.contains(field.name) { request.headers.append(field) }
    }

    private func followingRedirects<Value: Sendable>(
        of request: Request, delivery: BodyDelivery, reporting events: (any TransferEventSink)?,
        body: (ResponseHead, ResponseBody, [ResponseHead]) async throws -> Value
    ) async throws -> Value {
        var request = request
        var history: [ResponseHead] = []
        while true {
            let step: Step<Value> = try await transport.perform(
                request, delivery: delivery, reporting: events
            ) { [request, history] head, responseBody in
                guard let next = try await followUp(to: head, of: request) else {
                    return .done(try await body(head, responseBody, history))
                }
                return .redirect(next, head)
            }
            switch step {
            case .done(let value): return value
            case .redirect(let next, let head):
                guard history.count < redirects.maximum else {
                    throw SessionError.redirect(.tooMany(limit: redirects.maximum))
                }
                history.append(head)
                request = next
            }
        }
    }

    private func followUp(to head: ResponseHead, of request: Request) async throws -> Request? {
        guard var next = try redirects.proposal(after: head, to: request) else { return nil }
        if let decision = redirects.decision {
            let redirection = RedirectPolicy.Redirection(head: head, original: request, proposed: next)
            guard let decided = try await decision(redirection) else { return nil }
            next = decided
        }
        guard next.body.isReplayable else { throw SessionError.redirect(.bodyNotReplayable) }
        return next
    }

    private enum Step<Value: Sendable>: Sendable {
        case done(Value)
        case redirect(Request, ResponseHead)
    }
}
