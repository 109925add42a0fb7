// SPDX-License-Identifier: MIT

import ANHTTP

extension RetryPolicy {
    /// A kind of failure that may not recur in another attempt.
    ///
    /// | failure | ``ANHTTP/TransportError/reason-swift.property`` | the server may have acted | by default | typical cause |
    /// |---|---|---|---|---|
    /// | ``nameLookup`` | `cannotResolve`, `timedOut` while resolving | no | yes | a DNS server is busy |
    /// | ``connect`` | `cannotConnect`, `timedOut` while connecting or in the TLS handshake | no | yes | the server restarts, or a packet was lost |
    /// | ``tlsHandshake`` | `tls(.handshake)` | no | yes | the connection was lost during the handshake |
    /// | ``proxy`` | `proxy(.handshake)`, `proxy(.tunnelRefused)` with a status of 500 or above | no | yes | the proxy is busy |
    /// | ``connectionLost`` | `connectionLost` | yes | yes | the server restarted, or a middlebox dropped the connection |
    /// | ``noResponse`` | `timedOut` while sending, waiting for or receiving the response | yes | yes | the server is busy |
    /// | ``queue`` | `timedOut` waiting for a free connection | no | no | the client sends too many requests at once |
    /// | ``invalidResponse`` | `invalidResponse`, `invalidContentEncoding` | yes | no | the server does not follow the protocol, and is likely to do so again |
    ///
    /// Other failures are retried only if ``RetryPolicy/decision`` says so: an untrusted certificate, an address that
    /// is unusable or forbidden, rejected proxy credentials, a request that cannot be sent, a response above a limit, a
    /// body whose source failed, an expired wait for a route, and errors that the program throws.
    public enum Failure: CaseIterable, Hashable, Sendable {
        /// The host name could not be resolved, or a timeout expired during its lookup. Retriable by default, for any
        /// method.
        case nameLookup
        /// No connection could be established, or a timeout expired while connecting or during the TLS handshake. A
        /// forbidden address, or a local address that cannot be used, is not retriable. Retriable by default, for any
        /// method.
        case connect
        /// The TLS handshake was interrupted. An untrusted certificate is a failure of another kind, which is not
        /// retried. Retriable by default, for any method.
        case tlsHandshake
        /// The proxy could not be used: its handshake failed, or it refused a tunnel with a status of 500 or above.
        /// Retriable by default, for any method.
        case proxy
        /// The connection was lost before the end of the response; the server may have acted on the request. Retriable
        /// by default, for ``RetryPolicy/methods``.
        case connectionLost
        /// A timeout expired while the request was sent or the response received; the server may have acted on the
        /// request. Retriable by default, for ``RetryPolicy/methods``.
        case noResponse
        /// A timeout expired before a connection was free (``ANHTTP/Timeouts/queue``); not retriable by default.
        case queue
        /// The response violates HTTP, or its content coding is invalid; not retriable by default. An invalid content
        /// coding is detected when the body is read, which is too late for a retry.
        case invalidResponse

        /// The failures that are retriable by default: ``nameLookup``, ``connect``, ``tlsHandshake``, ``proxy``,
        /// ``connectionLost`` and ``noResponse``.
        ///
        /// To add one to a policy: `policy.failures.insert(.queue)`.
        public static let transient: Set<Failure> = [
            .nameLookup, .connect, .tlsHandshake, .proxy, .connectionLost, .noResponse,
        ]

        /// Creates the kind of an error; `nil` if the error is not retriable.
        package init?(_ error: any Error) {
            guard let error = error as? TransportError else { return nil }
            switch error.reason {
            case .cannotResolve: self = .nameLookup
            case .cannotConnect(.localAddress), .cannotConnect(.addressForbidden): return nil
            case .cannotConnect: self = .connect
            case .tls(.handshake): self = .tlsHandshake
            case .tls: return nil
            case .proxy(.handshake), .proxy(.tunnelRefused(status: 500...)): self = .proxy
            case .proxy: return nil
            case .connectionLost: self = .connectionLost
            case .invalidResponse, .invalidContentEncoding: self = .invalidResponse
            case .timedOut(let phase):
                guard let failure = Failure(phase) else { return nil }
                self = failure
            case .invalidURL, .unsupportedScheme, .invalidRequest, .unsupported,
                .responseTooLarge, .requestBody, .webSocketClosed, .shutDown, .internalInconsistency:
                return nil
            }
        }

        private init?(_ phase: TransportError.TimeoutPhase) {
            switch phase {
            case .connectivity: return nil
            case .queue: self = .queue
            case .nameLookup: self = .nameLookup
            case .connect, .tlsHandshake: self = .connect
            case .request, .responseHead, .responseBody: self = .noResponse
            }
        }
    }
}

extension TransportError {
    /// Whether a server may have seen the request, so that it may have acted on it.
    package var mayHaveReachedServer: Bool {
        switch reason {
        case .invalidURL, .unsupportedScheme, .invalidRequest, .unsupported, .cannotResolve, .cannotConnect, .proxy:
            false
        // With TLS 1.3, the server may refuse the certificate after it has received the request.
        case .tls(let failure): failure == .clientCertificateRefused
        case .timedOut(.connectivity), .timedOut(.queue), .timedOut(.nameLookup), .timedOut(.connect),
            .timedOut(.tlsHandshake):
            false
        case .timedOut(.request), .timedOut(.responseHead), .timedOut(.responseBody), .connectionLost,
            .invalidResponse, .invalidContentEncoding, .responseTooLarge, .requestBody, .webSocketClosed, .shutDown,
            .internalInconsistency:
            true
        }
    }
}
