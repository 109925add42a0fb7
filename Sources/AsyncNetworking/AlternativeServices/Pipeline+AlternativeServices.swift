// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Whether the response to a request may change what is known about its host: it comes from a server whose
    /// certificate and name were verified (RFC 6797 §8.1, RFC 7838 §2.1).
    func learns(from request: Request) -> Bool {
        guard usesStrictTransport || usesAlternativeServices, request.url.isHTTPS else { return false }
        let tls = request.options?.tls ?? TLSOptions()
        let policy =
            tls.hostPolicies.isEmpty ? tls.policy : tls.hostPolicies.value(for: HostName(request.url)) ?? tls.policy
        return !policy.allowsInvalidCertificates && policy.validatesDomainName
    }

    /// Performs an exchange over https, over an alternative service if there is one, and notes what the response says
    /// about its host.
    func performAndLearn(
        _ call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        guard let trial = alternative(for: call.request) else { return try await learn(from: call, respond: respond) }
        try await perform(call, over: trial, respond: respond)
    }

    /// Not inlined: the frame of every request would include the changed call.
    @inline(never)
    private func perform(
        _ call: PipelineCall, over trial: AlternativeServiceStore.Trial,
        respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        var call = call
        call.request[AlternativeRoute.self] = trial.route
        defer { trial.end() }
        try await learn(from: call, respond: respond)
    }

    private func learn(
        from call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await perform(call) { head, body in
            if usesStrictTransport { strictTransport.note(head, to: call.request.url) }
            if usesAlternativeServices { alternativeServices.note(head, to: call.request.url) }
            try await respond(head, body)
        }
    }

    /// Returns the alternative service for a request; `nil` to use the origin's own connection.
    private func alternative(for request: Request) -> AlternativeServiceStore.Trial? {
        guard triesAlternativeServices, request.webSocketUpgrade == nil,
            request.options?.httpVersion ?? .automatic == .automatic
        else { return nil }
        return alternativeServices.trial(for: request.url)
    }
}
