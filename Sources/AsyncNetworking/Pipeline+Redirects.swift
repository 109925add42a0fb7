// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Follows redirects until a response is not a redirect, or the policy returns a redirect as the response.
    @inline(never)
    func followRedirects(
        of call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let chain = RedirectChain(self, call.request.redirectPolicy ?? redirectPolicy)
        try await follow(chain, with: call, respond: respond)
    }

    /// Performs a call, and then the one that a redirect asks for.
    private func follow(
        _ chain: RedirectChain, with call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await perform(call) { head, body in
            let request = call.request
            if try chain.proposeNext(after: head, to: request), try await chain.decide(after: head, to: request) {
                return
            }
            try await respond(chain.head(head), body)
        }
        if let next = try chain.next(after: call) { try await follow(chain, with: next, respond: respond) }
    }
}

/// The state of a request that follows redirects. It is an object, because frames that hold requests are large.
private final class RedirectChain {
    private let pipeline: Pipeline
    private let policy: RedirectPolicy
    /// The redirects that were followed, oldest first.
    private var history: [ResponseHead] = []
    /// The request to send next; `nil` if the last response is not a redirect.
    private var next: Request?

    init(_ pipeline: Pipeline, _ policy: RedirectPolicy) {
        self.pipeline = pipeline
        self.policy = policy
    }

    /// Determines the request that a redirect asks for; returns whether there is one.
    @inline(never)
    func proposeNext(after head: ResponseHead, to request: Request) throws -> Bool {
        next = try policy.proposal(after: head, to: request, strictURL: pipeline.strictURL)
        return next != nil
    }

    /// Lets the policy decide about the next request; returns whether the redirect is followed.
    @inline(never)
    func decide(after head: ResponseHead, to request: Request) async throws -> Bool {
        if let decision = policy.decision, let proposed = next {
            next = try await decision(.init(head: head, original: request, proposed: proposed))?.continuing(request)
        }
        guard var decided = next else { return false }
        decided.url = pipeline.strictURL(decided.url)
        guard decided.body.isReplayable else { throw SessionError.redirect(.bodyNotReplayable) }
        next = decided
        history.append(head)
        return true
    }

    /// Returns the call with the next request; `nil` if the last response is not a redirect.
    @inline(never)
    func next(after call: PipelineCall) throws -> PipelineCall? {
        guard let next, let head = history.last else { return nil }
        guard history.count <= policy.maximum else {
            throw SessionError.redirect(.tooMany(limit: policy.maximum, to: next.url.redactedDescription))
        }
        call.monitor?.receive(.redirected(by: head, to: next))
        var call = call
        call.request = next
        self.next = nil
        return call
    }

    /// Returns the head of the response with the redirects before it.
    @inline(never)
    func head(_ head: ResponseHead) -> ResponseHead {
        var head = head
        if !history.isEmpty { head.redirectHistory = history }
        return head
    }
}
