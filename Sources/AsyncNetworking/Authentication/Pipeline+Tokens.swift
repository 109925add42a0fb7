// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import HTTPTypes

extension Pipeline {
    /// Performs a call with a bearer token, and once more with a refreshed token if the server answers with 401.
    func authorize(
        _ call: PipelineCall, by authenticator: Authenticator, _ policy: AuthenticationPolicy,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var ticket = await authenticator.ticketToSend()
        if ticket == nil { ticket = try await renew(authenticator, for: call) }
        var isLastTry = false
        while true {
            var attempt = call
            attempt.request.headers[.authorization] = ticket?.field
            attempt.request.tokenLineage = ticket?.lineage
            var isRefused = false
            try await answerChallenges(attempt, by: policy) { head, body in
                if head.status.code == 401, !isLastTry {
                    isRefused = true
                } else {
                    try await respond(head, body)
                }
            }
            guard isRefused else { return }
            ticket = try await renew(authenticator, after: ticket, for: call)
            // The refresh serves the program's next attempt.
            guard call.request.body.isReplayable else { throw SessionError.authentication(.bodyNotReplayable) }
            isLastTry = true
        }
    }

    private func renew(
        _ authenticator: Authenticator, after refused: Authenticator.Ticket? = nil, for call: PipelineCall
    ) async throws -> Authenticator.Ticket? {
        call.monitor?.receive(.refreshingToken)
        let renewed = Lock<Authenticator.Ticket?>(nil)
        let isInTime = try await waiting(upTo: call.request.timeLeft) {
            let ticket = try await authenticator.renew(after: refused)
            renewed.withLock { $0 = ticket }
        }
        // The error will name the limit of the call.
        guard isInTime else { throw TransportError.timedOut(.request, nil, FailureContext()) }
        return renewed.withLock(\.self)
    }
}

extension Request {
    /// The first token of which that of the request is a refreshed one, so that both belong to the same user; `nil` if
    /// no authenticator has authorized the request.
    var tokenLineage: Secret<String>? {
        get { self[TokenLineage.self] }
        set { self[TokenLineage.self] = newValue }
    }
}

private enum TokenLineage: RequestAttribute {
    static var defaultValue: Secret<String>? { nil }
}
