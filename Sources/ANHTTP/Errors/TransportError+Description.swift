// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension TransportError: CustomStringConvertible, LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A sentence that describes the failure and what to check, without secrets of the URL.
    public var description: String { sentence(quoting: true) }

    /// The ``description`` without texts of the server or the program: with the label of the error in place of a clause
    /// that may have some, and without the contents of certificates.
    package var outline: String {
        quotesOthers ? (label.rawValue + context.sentenceEnd(withMessage: false)).printable : sentence(quoting: false)
    }

    private func sentence(quoting isQuoting: Bool) -> String {
        let text = clause(quoting: isQuoting)
        let end =
            switch reason {
            case .invalidURL, .unsupportedScheme, .invalidRequest, .unsupported, .shutDown: "."
            default: context.sentenceEnd(withMessage: true)
            }
        // A text of the program or the server may be a sentence itself.
        return ((text.hasSuffix(".") ? String(text.dropLast()) : text) + end).printable
    }

    /// Returns the reason as a clause, for a failure of TLS with the contents of the server's certificates if `isQuoting`.
    func clause(quoting isQuoting: Bool) -> String {
        switch reason {
        case .invalidURL(let text):
            "The request cannot be sent: \(text.quoted) is not a URL with a host and a valid port."
        case .unsupportedScheme(let scheme):
            "The request cannot be sent: its scheme is \(scheme.quoted) instead of http or https."
        case .invalidRequest(let failure):
            "The request cannot be sent: \(failure)"
        case .unsupported(let capability):
            "The system's libcurl does not support \(capability)."
        case .timedOut(let phase):
            "The request timed out (phase: \(phase.name)\(context.limitClause))"
        case .cannotResolve:
            "The host name \(context.hostName) cannot be resolved; check its spelling and the DNS"
        case .cannotConnect(let failure):
            "No connection could be made: \(failure.clause)"
        case .proxy(let failure):
            "The proxy failed: \(failure.clause)"
        case .tls(let failure):
            "No trusted TLS connection could be made: \(context.clause(for: failure, quoting: isQuoting))"
        case .connectionLost(let phase):
            "The connection ended \(phase.clause)"
        case .invalidResponse(let failure):
            "The response is invalid: \(failure.clause)"
        case .invalidContentEncoding:
            "The body of the response cannot be decoded: its content coding is unknown or malformed"
        case .responseTooLarge(let limit):
            "The response is too large: \(limit.clause)"
        case .requestBody(let failure):
            "The request's body failed: \(failure.clause)"
        case .webSocketClosed(let closure):
            "The WebSocket connection was closed\(closure?.clause ?? "")"
        case .shutDown:
            "The transport was shut down."
        case .internalInconsistency(let text):
            "The request failed for lack of system resources, wrong use, or a bug, which please report: \(text)"
        }
    }
}

extension FailureContext {
    /// The host for a sentence about it.
    fileprivate var hostName: String { host ?? "of the server or proxy" }

    /// The time limit as the end of a clause; empty for other failures than timeouts.
    fileprivate var limitClause: String { timeLimit.map { ", limit: \($0.rounded)" } ?? "" }

    /// Returns the reason as a clause, if `isQuoting` followed by the expected and the actual property of the server if
    /// they are known.
    fileprivate func clause(for failure: TransportError.TLSFailure, quoting isQuoting: Bool) -> String {
        guard failure != .handshake || !isAnsweredWithoutTLS else {
            return "the port does not speak TLS; check the port, or use http"
        }
        let comparison = isQuoting ? serverTrust?.comparison(for: failure) : nil
        return "\(failure)" + (comparison.map { ": \($0)" } ?? "")
    }

    /// Whether the answer to the first message of the handshake was not TLS, according to OpenSSL.
    private var isAnsweredWithoutTLS: Bool {
        ["wrong version number", "packet length too long", "http request"].contains { message?.contains($0) == true }
    }

    /// Returns the end of a sentence with the URL, the address, libcurl's message and the error codes in parentheses.
    fileprivate func sentenceEnd(withMessage hasMessage: Bool) -> String {
        var details: [String] = []
        if !url.isEmpty { details.append(url) }
        if let address { details.append("at \(address)") }
        if hasMessage, let message { details.append(message) }
        if let errno { details.append("errno \(errno)") }
        if let curlCode { details.append("curl \(curlCode)") }
        if retryHistory != RetryHistory() { details.append("\(retryHistory)") }
        return details.isEmpty ? "." : " (\(details.joined(separator: "; ")))."
    }
}

extension TransportError.RequestFailure: CustomStringConvertible {
    /// The failure as the end of a sentence.
    package var description: String {
        switch self {
        case .headerName(let name): "\(name.quoted) is not a valid header field name."
        case .headerValue(let name): "the value of \(name) contains a line break or another control character."
        case .method(let method): "\(method.quoted) is not a valid method."
        case .option(let reason): reason
        }
    }
}

extension TransportError.TimeoutPhase {
    /// The name of the phase in a sentence.
    package var name: String {
        switch self {
        case .connectivity: "connectivity"
        case .queue: "queue"
        case .nameLookup: "name look-up"
        case .connect: "connect"
        case .tlsHandshake: "TLS handshake"
        case .request: "request"
        case .responseHead: "response head"
        case .responseBody: "response body"
        }
    }
}

extension TransportError.ConnectFailure {
    /// The reason as a clause that can end a sentence.
    package var clause: String {
        switch self {
        case .refused: "the port is closed; check that the server is running"
        case .unreachable: "there is no route to the host"
        case .systemTimeout: "the host did not answer"
        case .addressForbidden: "the address policy forbids the host's address"
        case .localAddress: "the local address, interface or socket cannot be used"
        case .other: "the system reported an error"
        }
    }
}

extension TransportError.ProxyFailure {
    /// The reason as a clause that can end a sentence.
    package var clause: String {
        switch self {
        case .authenticationRequired: "it requires other credentials"
        case .tunnelRefused(let status): "it answered CONNECT with status \(status)"
        case .handshake: "its handshake failed"
        case .tls(let failure): "\(failure)"
        }
    }
}

extension TransportError.TLSFailure: CustomStringConvertible {
    /// The reason as a clause that can end a sentence, such as `the certificate has expired`.
    public var description: String {
        switch self {
        case .certificateExpired: "the certificate has expired"
        case .certificateNotYetValid: "the certificate is not valid yet; check the system clock"
        case .selfSigned: "the certificate is self-signed"
        case .unknownAuthority: "the certificate's authority is not trusted"
        case .wrongHost: "the certificate is for another host"
        case .revoked: "the certificate was revoked"
        case .revocationUnknown: "no current revocation list covers the certificate"
        case .stapleMissing: "the server sent no OCSP response"
        case .badStaple(let reason):
            "the server's OCSP response is not acceptable" + (reason.isEmpty ? "" : ": \(reason)")
        case .wrongPurpose: "the certificate is not valid for servers"
        case .weakKey: "a key or signature of the certificates is too weak"
        case .nameConstraints: "the authority is not permitted to sign for this name"
        case .pinMismatch: "no key of the server's certificates is pinned"
        case .certificateNotPinned: "the server's certificates do not lead to a pinned one"
        case .noPins: "the policy requires pins but has none"
        case .invalidWithoutPins: "a policy that allows invalid certificates and validates names needs pins"
        case .rejected(let reason): reason
        case .untrusted(let result): "the certificate was not accepted (X509 error \(result))"
        case .handshake: "the handshake failed"
        case .badTrustRoots: "the configured trusted certificates cannot be read"
        case .badSecurityPolicy(let failure): "the policy cannot be used: \(failure)"
        case .badClientIdentity(let failure): "the client certificate cannot be used: \(failure)"
        case .clientCertificateRefused: "the server requires a client certificate, or a different one"
        case .keyLog(let path): "the TLS secrets cannot be written to \(path)"
        }
    }
}

extension TransportError.ConnectionLossPhase {
    /// The moment as part of a sentence.
    package var clause: String {
        switch self {
        case .beforeResponse: "before the response began"
        case .inHead: "within the head of the response"
        case .inBody(let received, let expected?): "after \(received) of \(expected) bytes of the body"
        case .inBody(let received, nil): "after \(received) bytes of the body"
        case .whileSending: "while the request was being sent"
        }
    }
}

extension TransportError.ResponseFailure {
    /// The reason as a clause that can end a sentence.
    var clause: String {
        switch self {
        case .notHTTP: "it does not begin with a status line"
        case .statusLine(let line): "its status line is \(line.printable.quoted)"
        case .headerLine(let line): "a header line is malformed\(Self.name(in: line).map { ": “\($0): …”" } ?? "")"
        case .contentLength: "its Content-Length is ambiguous or not a number"
        case .framing: "its framing is malformed"
        case .noFinalResponse: "there are only interim responses"
        case .webSocket(let reason): reason.printable
        }
    }

    /// The name of the field in a header line, whose value may be secret; `nil` if it is not known where the name ends.
    private static func name(in line: String) -> String? {
        var scanner = HeaderScanner(line)
        let name = scanner.takeToken()
        return !name.isEmpty && scanner.next == UInt8(ascii: ":") ? name : nil
    }
}

extension WebSocketClosure {
    /// The code and the reason as the end of a clause; empty without a code.
    fileprivate var clause: String {
        guard let code else { return "" }
        return " with code \(code)" + (reason.isEmpty ? "" : ": “\(reason)”")
    }
}

extension TransportError.SizeLimit {
    /// The limit as a clause that can end a sentence.
    package var clause: String {
        switch self {
        case .head(let limit): "the head has more than \(limit) bytes or too many fields"
        case .body(let limit): "the body has more than \(limit) bytes"
        case .decompressed(let limit): "the body decodes to more than \(limit) bytes"
        case .decompressionRatio(let limit): "the body decodes to more than \(limit) times its size"
        }
    }
}

extension TransportError.RequestBodyFailure {
    /// The reason as a clause that can end a sentence.
    package var clause: String {
        switch self {
        case .tooShort(let declared, let produced): "it ended after \(produced) of \(declared) bytes"
        case .tooLong(let declared): "it went on past its \(declared) bytes"
        case .notReplayable: "it had to be sent again but can be read only once"
        case .file(let path, let reason): "\(path): \(reason)"
        case .source(let error): "its source failed: \(error)"
        }
    }
}

extension Error {
    /// The error for archives and events, without texts of the server and the program, which may contain secrets: the type
    /// of an error of the program's own.
    package var outline: String {
        switch self {
        case is CancellationError: "cancelled"
        case let error as TransportError: error.outline
        default: "\(type(of: self))"
        }
    }
}
