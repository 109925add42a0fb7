// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Follows redirects until a response is not a redirect, or the policy returns a redirect as the response.
    func followRedirects(
        of call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let policy = call.request.redirectPolicy ?? redirectPolicy
        var call = call
        var history: [ResponseHead] = []
        while true {
            var redirect: (head: ResponseHead, next: Request)?
            try await perform(call) { head, body in
                if let next = try await policy.followUp(to: head, of: call.request, strictURL: strictURL) {
                    redirect = (head, next)
                } else if history.isEmpty {
                    try await respond(head, body)
                } else {
                    var head = head
                    head.redirectHistory = history
                    try await respond(head, body)
                }
            }
            guard let redirect else { return }
            guard history.count < policy.maximum else {
                throw SessionError.redirect(.tooMany(limit: policy.maximum))
            }
            call.redirect(by: redirect.head, to: redirect.next)
            history.append(redirect.head)
        }
    }
}

extension PipelineCall {
    @inline(never)
    fileprivate mutating func redirect(by head: ResponseHead, to next: Request) {
        monitor?.receive(.redirected(by: head, to: next))
        request = next
    }
}

extension RedirectPolicy {
    /// Returns the request to send next, or `nil` if the response must not be followed.
    fileprivate func followUp(
        to head: ResponseHead, of request: Request, strictURL: (URL) -> URL
    ) async throws -> Request? {
        guard var next = try proposal(after: head, to: request, strictURL: strictURL) else { return nil }
        if let decision {
            guard let decided = try await decision(Redirection(head: head, original: request, proposed: next)) else {
                return nil
            }
            next = decided
        }
        next.url = strictURL(next.url)
        guard next.body.isReplayable else { throw SessionError.redirect(.bodyNotReplayable) }
        return next
    }
}
