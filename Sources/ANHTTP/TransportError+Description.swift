// SPDX-License-Identifier: MIT

extension TransportError: CustomStringConvertible {
    /// A sentence that says what happened and what to check; it shows no secrets of the URL.
    public var description: String {
        switch self {
        case .invalidRequest(let problem):
            "The request cannot be sent: \(problem)"
        case .unsupported(let capability):
            "The libcurl of this system has no \(capability.rawValue)."
        case .timedOut(let phase, let limit, let facts):
            "The time for the request ran out (\(phase.rawValue), limit \(limit))\(facts.sentenceEnd)"
        case .cannotResolve(let host, let facts):
            "The name \(host) has no address; check its spelling and the DNS\(facts.sentenceEnd)"
        case .cannotConnect(let reason, let facts):
            "No connection could be made: \(reason)\(facts.sentenceEnd)"
        case .proxy(let reason, let facts):
            "The proxy failed: \(reason)\(facts.sentenceEnd)"
        case .tls(let reason, let facts):
            "No trusted TLS connection could be made: \(reason)\(facts.comparison(for: reason))\(facts.sentenceEnd)"
        case .connectionLost(let loss, let facts):
            "The connection ended \(loss)\(facts.sentenceEnd)"
        case .invalidResponse(let problem, let facts):
            "The response is not valid HTTP: \(problem)\(facts.sentenceEnd)"
        case .responseTooLarge(let limit, let facts):
            "The response is too large: \(limit)\(facts.sentenceEnd)"
        case .requestBody(let problem, let facts):
            "The request's body failed: \(problem)\(facts.sentenceEnd)"
        case .shutDown:
            "The transport was shut down."
        case .internalInconsistency(let words, let facts):
            "Something that cannot happen has happened; please report it: \(words)\(facts.sentenceEnd)"
        }
    }

    /// What is known about the transfer; nil for errors that come before one.
    public var facts: TransferFacts? {
        switch self {
        case .invalidRequest, .unsupported, .shutDown: nil
        case .timedOut(_, _, let facts), .cannotResolve(_, let facts), .cannotConnect(_, let facts),
            .proxy(_, let facts), .tls(_, let facts), .connectionLost(_, let facts), .invalidResponse(_, let facts),
            .responseTooLarge(_, let facts), .requestBody(_, let facts), .internalInconsistency(_, let facts):
            facts
        }
    }

    /// The same error with other facts, where it has any.
    package func changingFacts(_ change: (inout TransferFacts) -> Void) -> TransportError {
        func changed(_ facts: TransferFacts) -> TransferFacts {
            var facts = facts
            change(&facts)
            return facts
        }
        return switch self {
        case .invalidRequest, .unsupported, .shutDown: self
        case .timedOut(let phase, let limit, let facts): .timedOut(phase, limit: limit, changed(facts))
        case .cannotResolve(let host, let facts): .cannotResolve(host: host, changed(facts))
        case .cannotConnect(let reason, let facts): .cannotConnect(reason, changed(facts))
        case .proxy(let reason, let facts): .proxy(reason, changed(facts))
        case .tls(let reason, let facts): .tls(reason, changed(facts))
        case .connectionLost(let loss, let facts): .connectionLost(loss, changed(facts))
        case .invalidResponse(let problem, let facts): .invalidResponse(problem, changed(facts))
        case .responseTooLarge(let limit, let facts): .responseTooLarge(limit, changed(facts))
        case .requestBody(let problem, let facts): .requestBody(problem, changed(facts))
        case .internalInconsistency(let words, let facts): .internalInconsistency(words, changed(facts))
        }
    }
}

extension TransferFacts {
    /// What was expected of the server and what came, where that is known.
    fileprivate func comparison(for failure: TransportError.TLSFailure) -> String {
        serverTrust?.comparison(for: failure).map { ": \($0)" } ?? ""
    }

    /// The end of a sentence: the URL, where it was, libcurl's words and number.
    fileprivate var sentenceEnd: String {
        var details: [String] = []
        if !url.isEmpty { details.append(url) }
        if let address { details.append("at \(address)") }
        if let message { details.append(message) }
        if let errno { details.append("errno \(errno)") }
        if let curlCode { details.append("curl \(curlCode)") }
        if retries != RetryHistory() { details.append("\(retries)") }
        return details.isEmpty ? "." : " (\(details.joined(separator: "; ")))."
    }
}

extension TransportError.RequestProblem: CustomStringConvertible {
    /// What is wrong, as the end of a sentence.
    public var description: String {
        switch self {
        case .url(let text): "“\(text)” is not the URL of a host."
        case .scheme(let scheme): "its scheme is “\(scheme)”, where http or https is needed."
        case .headerName(let name): "“\(name)” is not the name of a header field."
        case .headerValue(let name): "the value of \(name) has a line break or another control character."
        case .method(let method): "“\(method)” is not a method."
        case .option(let reason): reason
        }
    }
}

extension TransportError.ConnectFailure: CustomStringConvertible {
    /// The reason, as the end of a sentence.
    public var description: String {
        switch self {
        case .refused: "the port is closed, so check that the server is running"
        case .unreachable: "there is no route to the host"
        case .systemTimeout: "the host did not answer"
        case .addressForbidden: "the host's address is none that may be connected to"
        case .localAddress: "this side's address, interface or socket cannot be used"
        case .other: "the system refused"
        }
    }
}

extension TransportError.ProxyFailure: CustomStringConvertible {
    /// The reason, as the end of a sentence.
    public var description: String {
        switch self {
        case .authenticationRequired: "it wants other credentials"
        case .tunnelRefused(let status): "it answered CONNECT with status \(status)"
        case .handshake: "its handshake went wrong"
        case .tls(let failure): "\(failure)"
        }
    }
}

extension TransportError.TLSFailure: CustomStringConvertible {
    /// The reason, as the end of a sentence.
    public var description: String {
        switch self {
        case .certificateExpired: "the certificate has expired"
        case .certificateNotYetValid: "the certificate is not valid yet, so check the clock"
        case .selfSigned: "the certificate is signed by itself"
        case .unknownAuthority: "the certificate's authority is not trusted"
        case .wrongHost: "the certificate is for another host"
        case .revoked: "the certificate was revoked"
        case .revocationUnknown: "no current list says whether the certificate was revoked"
        case .stapleMissing: "the server showed no OCSP response"
        case .badStaple(let reason): "the server's OCSP response cannot be taken: \(reason)"
        case .wrongPurpose: "the certificate is not one for servers"
        case .weakKey: "a key or signature of the certificates is too weak"
        case .nameConstraints: "the authority may not sign for this name"
        case .pinMismatch: "no key of the server's certificates is pinned"
        case .certificateNotPinned: "the server's certificates do not lead to a pinned one"
        case .noPins: "the policy pins, and has no pins"
        case .invalidWithoutPins: "a policy that allows invalid certificates and validates names needs pins"
        case .rejected(let reason): reason
        case .untrusted(let result): "the certificate was not accepted (X509 error \(result))"
        case .handshake: "the two sides found no agreement"
        case .badTrustRoots: "the trusted certificates given cannot be read"
        case .badSecurityPolicy(let problem): "the policy cannot be used: \(problem)"
        case .badClientIdentity(let problem): "the client's own certificate cannot be used: \(problem)"
        case .clientCertificateRefused: "the server wants a client's certificate, or another one"
        case .keyLog(let path): "the secrets cannot be written to \(path)"
        }
    }
}

extension TransportError.ConnectionLoss: CustomStringConvertible {
    /// The moment, as part of a sentence.
    public var description: String {
        switch self {
        case .beforeResponse: "before the response began"
        case .inHead: "within the response's head"
        case .inBody(let received, let expected?): "after \(received) of \(expected) bytes of the body"
        case .inBody(let received, nil): "after \(received) bytes of the body"
        case .whileSending: "while the request was being sent"
        }
    }
}

extension TransportError.ResponseProblem: CustomStringConvertible {
    /// The reason, as the end of a sentence.
    public var description: String {
        switch self {
        case .notHTTP: "it does not begin with a status line"
        case .statusLine(let line): "its status line is “\(line)”"
        case .headerLine(let line): "a header line is “\(line)”"
        case .contentLength: "its Content-Length is ambiguous or no number"
        case .framing: "its framing is broken"
        case .contentEncoding: "its content coding is unknown or broken"
        case .noFinalResponse: "only interim responses came"
        }
    }
}

extension TransportError.SizeLimit: CustomStringConvertible {
    /// The limit, as the end of a sentence.
    public var description: String {
        switch self {
        case .head(let limit): "the head has more than \(limit) bytes or too many fields"
        case .body(let limit): "the body has more than \(limit) bytes"
        case .decompressed(let limit): "the body unpacks to more than \(limit) bytes"
        case .decompressionRatio(let limit): "the body unpacks to more than \(limit) times its size"
        }
    }
}

extension TransportError.RequestBodyProblem: CustomStringConvertible {
    /// The reason, as the end of a sentence.
    public var description: String {
        switch self {
        case .tooShort(let declared, let produced): "it ended after \(produced) of \(declared) bytes"
        case .tooLong(let declared): "it went on past its \(declared) bytes"
        case .notReplayable: "it had to be sent a second time and can be read only once"
        case .file(let path, let reason): "\(path): \(reason)"
        case .source(let error): "its source failed: \(error)"
        }
    }
}
