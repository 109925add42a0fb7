// SPDX-License-Identifier: MIT

import ANHTTP

extension RetryPolicy {
    /// A kind of failure that another attempt may not meet.
    ///
    /// | failure | of ``ANHTTP/TransportError`` | the server may have acted | by default | why |
    /// |---|---|---|---|---|
    /// | ``nameLookup`` | `cannotResolve`, `timedOut` while resolving | no | yes | a DNS server was busy |
    /// | ``connect`` | `cannotConnect`, `timedOut` while connecting or in the TLS handshake | no | yes | the server restarts, or a packet was lost |
    /// | ``tlsHandshake`` | `tls(.handshake)` | no | yes | a connection that breaks during the handshake looks like that |
    /// | ``proxy`` | `proxy(.handshake)`, `proxy(.tunnelRefused)` with a status of 500 or above | no | yes | the proxy was busy |
    /// | ``connectionLost`` | `connectionLost` | yes | yes | the server restarted, or a middlebox forgot the connection |
    /// | ``noAnswer`` | `timedOut` while sending, waiting for or receiving the response | yes | yes | the server was busy |
    /// | ``queue`` | `timedOut` waiting for a free connection | no | no | this side asks for too much at once |
    /// | ``invalidResponse`` | `invalidResponse` | yes | no | a server that answers like that does so again |
    ///
    /// All others are never worth another attempt: a certificate that is not trusted, an address that cannot be used or is
    /// forbidden, credentials that a proxy does not take, a request that cannot be sent, a response above a limit, a body
    /// whose source failed, no route for as long as a session waits for one, and what a program itself throws.
    public enum Failure: String, CaseIterable, Hashable, Sendable {
        /// The name was not resolved.
        case nameLookup
        /// No connection was made.
        case connect
        /// The TLS handshake broke off.
        case tlsHandshake
        /// The proxy could not be used.
        case proxy
        /// The connection ended too early.
        case connectionLost
        /// The time ran out after the request was begun to be sent.
        case noAnswer
        /// The time ran out before there was a connection to use.
        case queue
        /// The response broke the rules of HTTP.
        case invalidResponse

        /// The failures that may be gone the next time.
        public static let transient: Set<Failure> = [
            .nameLookup, .connect, .tlsHandshake, .proxy, .connectionLost, .noAnswer,
        ]

        /// Whether the server may have acted on the request.
        public var mayHaveReachedServer: Bool {
            switch self {
            case .nameLookup, .connect, .tlsHandshake, .proxy, .queue: false
            case .connectionLost, .noAnswer, .invalidResponse: true
            }
        }

        /// The kind of an error; nil for one that another attempt would meet again.
        package init?(_ error: any Error) {
            guard let error = error as? TransportError else { return nil }
            switch error {
            case .cannotResolve: self = .nameLookup
            case .cannotConnect(.localAddress, _), .cannotConnect(.addressForbidden, _): return nil
            case .cannotConnect: self = .connect
            case .tls(.handshake, _): self = .tlsHandshake
            case .tls: return nil
            case .proxy(.handshake, _), .proxy(.tunnelRefused(status: 500...), _): self = .proxy
            case .proxy: return nil
            case .connectionLost: self = .connectionLost
            case .invalidResponse: self = .invalidResponse
            case .timedOut(let phase, _, _):
                guard let failure = Failure(phase) else { return nil }
                self = failure
            case .invalidRequest, .unsupported, .responseTooLarge, .requestBody, .shutDown, .internalInconsistency:
                return nil
            }
        }

        private init?(_ phase: TransportError.TimeoutPhase) {
            switch phase {
            case .connectivity: return nil
            case .queue: self = .queue
            case .nameLookup: self = .nameLookup
            case .connect, .tlsHandshake: self = .connect
            case .request, .responseHead, .responseBody: self = .noAnswer
            }
        }
    }
}
