// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem
import HTTPTypes

extension Pipeline {
    /// Sends a request with a bearer token, and once more with a refreshed token if the server answers with 401.
    func authorize(
        _ request: Request, _ call: inout Call, _ next: Next, by authenticator: Authenticator,
        _ policy: AuthenticationPolicy
    ) async throws -> OpenResponse {
        await authenticator.follow(clock, now)
        var ticket = await authenticator.ticketToSend()
        if ticket == nil { ticket = try await renew(authenticator, for: request, call) }
        var isLastTry = false
        while true {
            var attempt = request
            attempt.headers[.authorization] = ticket?.field
            attempt.tokenLineage = ticket?.lineage
            let response = try await answerChallenges(attempt, &call, next, by: policy)
            guard response.head.status.code == 401, !isLastTry else { return response }
            await call.close()
            ticket = try await renew(authenticator, after: ticket, for: request, call)
            // The refresh serves the program's next attempt.
            guard request.body.isReplayable else { throw SessionError.authentication(.bodyNotReplayable) }
            isLastTry = true
        }
    }

    private func renew(
        _ authenticator: Authenticator, after refused: Authenticator.Ticket? = nil, for request: Request, _ call: Call
    ) async throws -> Authenticator.Ticket? {
        call.monitor?.receive(.refreshingToken)
        let renewed = Lock<Authenticator.Ticket?>(nil)
        let isInTime = try await waiting(upTo: request.timeLeft) {
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
