// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

extension Pipeline {
    /// Returns the URL to send a request to: with `https` if its host is known to require it.
    func strictURL(_ url: URL) -> URL {
        usesStrictTransport && url.isPlainHTTP && strictTransport.requiresTLS(for: url) ? url.withTLS : url
    }

    /// Whether the response to a request may change the hosts that require https: it comes from a server whose
    /// certificate was verified (RFC 6797 §8.1).
    func learnsStrictTransport(from request: Request) -> Bool {
        guard usesStrictTransport, request.url.isHTTPS else { return false }
        let tls = request.options?.tls ?? TLSOptions()
        let policy =
            tls.hostPolicies.isEmpty ? tls.policy : tls.hostPolicies.value(for: HostName(request.url)) ?? tls.policy
        return !policy.allowsInvalidCertificates && policy.validatesDomainName
    }

    /// Performs an exchange over https and notes what the response says about its host.
    func noteStrictTransport(
        of call: PipelineCall, respond: (ResponseHead, ResponseBody) async throws -> Void
    ) async throws {
        try await perform(call) { head, body in
            strictTransport.note(head, to: call.request.url)
            try await respond(head, body)
        }
    }
}
