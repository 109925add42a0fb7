// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Follows redirects until a response is not a redirect, or the policy returns a redirect as the response.
    @inline(never)
    func followRedirects(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        let policy = request.redirectPolicy ?? redirectPolicy
        var request = request
        var history: [ResponseHead] = []
        while true {
            var response = try await next(request, &call)
            guard let target = try await target(of: response.head, to: request, by: policy) else {
                if !history.isEmpty { response.head.redirectHistory = history }
                return response
            }
            history.append(response.head)
            guard history.count <= policy.maximum else {
                throw SessionError.redirect(.tooMany(limit: policy.maximum, to: target.url.redactedDescription))
            }
            await call.close()
            call.monitor?.receive(.redirected(by: response.head, to: target))
            request = target
        }
    }

    /// Returns the request that a redirect asks for; `nil` if the response is not a redirect, or not followed.
    @inline(never)
    private func target(of head: ResponseHead, to request: Request, by policy: RedirectPolicy) async throws -> Request?
    {
        guard var target = try policy.proposal(after: head, to: request, strictURL: strictURL) else { return nil }
        if let decision = policy.decision {
            guard let decided = try await decision(.init(head: head, original: request, proposed: target)) else {
                return nil
            }
            target = decided.continuing(request)
        }
        target.url = strictURL(target.url)
        guard target.body.isReplayable else { throw SessionError.redirect(.bodyNotReplayable) }
        return target
    }
}
