// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Follows redirects until a response is not a redirect, or the policy returns a redirect as the response.
    @inline(never)
    func followRedirects(
        of call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        let chain = RedirectChain(call, self)
        repeat {
            try await perform(chain.call) { head, body in
                if try chain.proposeNext(after: head), try await chain.decide(after: head) { return }
                try await respond(chain.head(head), body)
            }
        } while try chain.follow()
    }
}

/// The state of a request that follows redirects. It is an object, because frames that hold requests are large.
private final class RedirectChain {
    private(set) var call: PipelineCall
    private let pipeline: Pipeline
    private let policy: RedirectPolicy
    /// The redirects that were followed, oldest first.
    private var history: [ResponseHead] = []
    /// The request to send next; `nil` if the last response is not a redirect.
    private var next: Request?

    @inline(never)
    init(_ call: PipelineCall, _ pipeline: Pipeline) {
        self.call = call
        self.pipeline = pipeline
        policy = call.request.redirectPolicy ?? pipeline.redirectPolicy
    }

    /// Determines the request that a redirect asks for; returns whether there is one.
    @inline(never)
    func proposeNext(after head: ResponseHead) throws -> Bool {
        next = try policy.proposal(after: head, to: call.request, strictURL: pipeline.strictURL)
        return next != nil
    }

    /// Lets the policy decide about the next request; returns whether the redirect is followed.
    @inline(never)
    func decide(after head: ResponseHead) async throws -> Bool {
        if let decision = policy.decision, let proposed = next {
            next = try await decision(.init(head: head, original: call.request, proposed: proposed))
        }
        guard var decided = next else { return false }
        decided.url = pipeline.strictURL(decided.url)
        guard decided.body.isReplayable else { throw SessionError.redirect(.bodyNotReplayable) }
        next = decided
        history.append(head)
        return true
    }

    /// Makes the next request the current one; returns whether there is one.
    @inline(never)
    func follow() throws -> Bool {
        guard let next, let head = history.last else { return false }
        guard history.count <= policy.maximum else {
            throw SessionError.redirect(.tooMany(limit: policy.maximum, to: next.url.redactedDescription))
        }
        call.monitor?.receive(.redirected(by: head, to: next))
        call.request = next
        self.next = nil
        return true
    }

    /// Returns the head of the response with the redirects before it.
    @inline(never)
    func head(_ head: ResponseHead) -> ResponseHead {
        var head = head
        if !history.isEmpty { head.redirectHistory = history }
        return head
    }
}
