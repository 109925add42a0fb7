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

    /// Sends a request over https, over an alternative service if there is one, and notes what the response says about
    /// its host.
    func learn(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        let response =
            if let trial = alternative(for: request) {
                try await send(request, &call, next, over: trial)
            } else {
                try await next(request, &call)
            }
        if usesStrictTransport { strictTransport.note(response.head, to: request.url) }
        if usesAlternativeServices { alternativeServices.note(response.head, to: request.url) }
        return response
    }

    /// Not inlined: the frame of every request would include the changed one.
    @inline(never)
    private func send(
        _ request: Request, _ call: inout Call, _ next: Next, over trial: AlternativeServiceStore.Trial
    ) async throws -> OpenResponse {
        var request = request
        request[AlternativeRoute.self] = trial.route
        defer { trial.end() }
        return try await next(request, &call)
    }

    /// Returns the alternative service for a request; `nil` to use the origin's own connection.
    private func alternative(for request: Request) -> AlternativeServiceStore.Trial? {
        guard triesAlternativeServices, request.webSocketUpgrade == nil,
            request.options?.httpVersion ?? .automatic == .automatic
        else { return nil }
        return alternativeServices.trial(for: request.url)
    }
}
