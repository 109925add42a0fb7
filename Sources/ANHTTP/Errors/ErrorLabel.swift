// SPDX-License-Identifier: MIT

/// A short, stable name of an error, from a closed set, for metrics and logs.
///
/// Its raw value is the value of `error.type` in the conventions of OpenTelemetry. A release may add labels, and does not
/// rename any.
package enum ErrorLabel: String, CaseIterable, Sendable {
    /// The task was cancelled, or the program's own code threw `CancellationError`.
    case cancelled
    /// ``TransportError/Reason/invalidURL(_:)``.
    case invalidURL = "invalid_url"
    /// ``TransportError/Reason/unsupportedScheme(_:)``.
    case unsupportedScheme = "unsupported_scheme"
    /// ``TransportError/Reason/invalidRequest(_:)``.
    case invalidRequest = "invalid_request"
    /// ``TransportError/Reason/unsupported(_:)``.
    case unsupported
    /// A timeout while waiting for a route to the host.
    case connectivityTimeout = "timeout_connectivity"
    /// A timeout while waiting for a free connection.
    case queueTimeout = "timeout_queue"
    /// A timeout while resolving a host name.
    case nameLookupTimeout = "timeout_name_lookup"
    /// A timeout while connecting, one of the system included.
    case connectTimeout = "timeout_connect"
    /// A timeout in the TLS handshake or while establishing a tunnel.
    case tlsHandshakeTimeout = "timeout_tls_handshake"
    /// A timeout while sending the request.
    case requestTimeout = "timeout_request"
    /// A timeout while waiting for the head of the response.
    case responseHeadTimeout = "timeout_response_head"
    /// A timeout while receiving the body of the response.
    case responseBodyTimeout = "timeout_response_body"
    /// ``TransportError/Reason/cannotResolve``.
    case cannotResolve = "cannot_resolve"
    /// The port is closed.
    case refused = "connection_refused"
    /// There is no route to the host.
    case unreachable = "host_unreachable"
    /// The address policy forbids the address.
    case addressForbidden = "address_forbidden"
    /// No connection could be made for another reason.
    case cannotConnect = "cannot_connect"
    /// The proxy requires other credentials, or refused the tunnel.
    case proxyRefused = "proxy_refused"
    /// The protocol of the proxy failed.
    case proxyFailed = "proxy_failed"
    /// The certificate of the server is not trusted.
    case certificateUntrusted = "certificate_untrusted"
    /// No key or certificate of the server is pinned.
    case pinMismatch = "pin_mismatch"
    /// The TLS handshake failed.
    case tlsHandshake = "tls_handshake"
    /// The server requires a client certificate, or a different one.
    case clientCertificate = "client_certificate"
    /// The security policy, the trusted certificates or other TLS options cannot be used.
    case tlsConfiguration = "tls_configuration"
    /// ``TransportError/Reason/connectionLost(_:)``.
    case connectionLost = "connection_lost"
    /// ``TransportError/Reason/invalidResponse(_:)``.
    case invalidResponse = "invalid_response"
    /// ``TransportError/Reason/invalidContentEncoding``.
    case invalidContentEncoding = "invalid_content_encoding"
    /// ``TransportError/Reason/responseTooLarge(_:)``.
    case responseTooLarge = "response_too_large"
    /// ``TransportError/Reason/requestBody(_:)``.
    case requestBody = "request_body"
    /// ``TransportError/Reason/webSocketClosed(_:)``.
    case webSocketClosed = "websocket_closed"
    /// The session or its transport was shut down before the request.
    case shutDown = "shut_down"
    /// ``TransportError/Reason/internalInconsistency(_:)``.
    case internalInconsistency = "internal_inconsistency"
    /// The request could not be created from its parameters.
    case requestEncoding = "request_encoding"
    /// The status of the response was rejected.
    case statusRejected = "status_rejected"
    /// The media type of the response was rejected.
    case mediaTypeRejected = "media_type_rejected"
    /// The body of the response could not be parsed or decoded.
    case responseDecoding = "response_decoding"
    /// A redirect could not be followed.
    case redirect
    /// The request could not be authenticated.
    case authentication
    /// A cookie could not be set.
    case cookie
    /// The request accepts only a cached response, and there is none.
    case notCached = "not_cached"
    /// An interceptor returned a closed response.
    case closedResponse = "closed_response"
    /// A file could not be read or written.
    case file
    /// A download could not be resumed.
    case notResumable = "not_resumable"
    /// A resumable upload could not go on.
    case upload
    /// A circuit breaker has not sent the request.
    case circuitOpen = "circuit_open"
    /// A download has a wrong digest.
    case digest
    /// An error of the program's own code.
    case other
}

extension TransportError {
    /// The label of the reason.
    package var label: ErrorLabel {
        switch reason {
        case .invalidURL: .invalidURL
        case .unsupportedScheme: .unsupportedScheme
        case .invalidRequest: .invalidRequest
        case .unsupported: .unsupported
        case .timedOut(let phase): phase.label
        case .cannotResolve: .cannotResolve
        case .cannotConnect(let failure): failure.label
        case .proxy(.authenticationRequired), .proxy(.tunnelRefused): .proxyRefused
        case .proxy(.handshake), .proxy(.tls): .proxyFailed
        case .tls(let failure): failure.label
        case .connectionLost: .connectionLost
        case .invalidResponse: .invalidResponse
        case .invalidContentEncoding: .invalidContentEncoding
        case .responseTooLarge: .responseTooLarge
        case .requestBody: .requestBody
        case .webSocketClosed: .webSocketClosed
        case .shutDown: .shutDown
        case .internalInconsistency: .internalInconsistency
        }
    }
}

extension TransportError.TimeoutPhase {
    fileprivate var label: ErrorLabel {
        switch self {
        case .connectivity: .connectivityTimeout
        case .queue: .queueTimeout
        case .nameLookup: .nameLookupTimeout
        case .connect: .connectTimeout
        case .tlsHandshake: .tlsHandshakeTimeout
        case .request: .requestTimeout
        case .responseHead: .responseHeadTimeout
        case .responseBody: .responseBodyTimeout
        }
    }
}

extension TransportError.ConnectFailure {
    fileprivate var label: ErrorLabel {
        switch self {
        case .refused: .refused
        case .unreachable: .unreachable
        case .systemTimeout: .connectTimeout
        case .addressForbidden: .addressForbidden
        case .localAddress, .other: .cannotConnect
        }
    }
}

extension TransportError.TLSFailure {
    fileprivate var label: ErrorLabel {
        switch self {
        case .certificateExpired, .certificateNotYetValid, .selfSigned, .unknownAuthority, .wrongHost, .revoked,
            .revocationUnknown, .stapleMissing, .badStaple, .wrongPurpose, .weakKey, .nameConstraints, .rejected,
            .untrusted:
            .certificateUntrusted
        case .pinMismatch, .certificateNotPinned: .pinMismatch
        case .handshake: .tlsHandshake
        case .clientCertificateRefused, .badClientIdentity: .clientCertificate
        case .noPins, .invalidWithoutPins, .badTrustRoots, .badSecurityPolicy, .keyLog: .tlsConfiguration
        }
    }
}
