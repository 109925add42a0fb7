// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The exit statuses of the program; those that curl(1) has, too, are numbered as in curl.
package enum ExitStatus: Int32, CaseIterable, Sendable {
    case success = 0
    case unsupportedScheme = 1
    case usage = 2
    case badURL = 3
    case notBuiltIn = 4
    case cannotResolve = 6
    case cannotConnect = 7
    case invalidResponse = 8
    case truncated = 18
    case refusedStatus = 22
    case cannotWrite = 23
    case cannotRead = 26
    case timedOut = 28
    case badRange = 33
    case tlsHandshake = 35
    case tooManyRedirects = 47
    case emptyReply = 52
    case sendFailed = 55
    case receiveFailed = 56
    case untrusted = 60
    case contentEncoding = 61
    case tooLarge = 63
    case cannotSendAgain = 65
    case internalError = 70
    case wrongChecksum = 71
    case webSocketClosed = 72
    case badTrustRoots = 77
    case proxyFailed = 97
    case interrupted = 130
    case terminated = 143

    /// The meaning of the exit status.
    var meaning: String {
        switch self {
        case .success: "success"
        case .unsupportedScheme: "the scheme of the URL or of a redirect is neither http nor https"
        case .usage: "the command line is not valid"
        case .badURL: "a URL is malformed"
        case .notBuiltIn: "the system's libcurl lacks a required feature"
        case .cannotResolve: "the host name cannot be resolved"
        case .cannotConnect: "the host cannot be connected to"
        case .invalidResponse: "the response is not valid HTTP, or not one to a resumable upload"
        case .truncated: "the body is truncated"
        case .refusedStatus: "with --fail, -o or -O: the status is 400 or above"
        case .cannotWrite: "the output cannot be written"
        case .cannotRead: "a file to send cannot be read, or has changed"
        case .timedOut: "the request timed out"
        case .badRange: "the server did not send the requested range"
        case .tlsHandshake: "the TLS handshake failed"
        case .tooManyRedirects: "too many redirects"
        case .emptyReply: "the server closed the connection without a response"
        case .sendFailed: "the connection was lost while sending"
        case .receiveFailed: "the connection was lost while receiving"
        case .untrusted: "the server's certificate is not trusted"
        case .contentEncoding: "the body cannot be decompressed"
        case .tooLarge: "the response or the upload exceeds a size limit"
        case .cannotSendAgain: "a redirect requires the body again, which cannot be replayed"
        case .internalError: "internal error; please report it"
        case .wrongChecksum: "the file does not have the given checksum"
        case .webSocketClosed: "the server closed the WebSocket connection with another code than 1000 or 1001"
        case .badTrustRoots: "the file given with --cacert cannot be used"
        case .proxyFailed: "the proxy refused the connection or failed"
        case .interrupted: "Ctrl-C"
        case .terminated: "SIGTERM"
        }
    }

    /// The exit statuses with their meanings, one per line.
    static var table: String {
        allCases.map { status in
            let number = String(status.rawValue)
            return String(repeating: " ", count: 5 - number.count) + number + "  " + status.meaning
        }.joined(separator: "\n")
    }

    /// Whether an error, thrown outside of a job, is one of the library or this program and not one of the argument
    /// parser.
    static func knows(_ error: any Error) -> Bool {
        error is UsageError || error is SessionError || error is TransportError || error is SerializationError
            || error is OutputError
    }

    /// Creates the exit status for an error of the library or this program.
    package init(for error: any Error) {
        self =
            switch error {
            case let error as SessionError: Self(session: error)
            case let error as TransportError: Self(transport: error)
            case let error as SerializationError: Self(serialization: error)
            case is UsageError: .usage
            case is StatusError: .refusedStatus
            case is OutputError: .cannotWrite
            case is CancellationError: .interrupted
            default: .internalError
            }
    }

    private init(session error: SessionError) {
        self =
            switch error {
            case .transport(let error): Self(transport: error)
            case .serialization(let error): Self(serialization: error)
            case .redirect(.tooMany): .tooManyRedirects
            case .redirect(.location): .badURL
            case .redirect(.downgrade): .unsupportedScheme
            case .redirect(.bodyNotReplayable): .cannotSendAgain
            case .file: .cannotWrite
            case .notResumable: .badRange
            case .digest: .wrongChecksum
            case .upload(let failure): Self(upload: failure)
            case .interrupted(let cause, _): Self(session: cause)
            default: .internalError
            }
    }

    private init(upload failure: SessionError.UploadFailure) {
        self =
            switch failure {
            case .bodyNotResumable, .sourceChanged: .cannotRead
            case .tooLarge: .tooLarge
            case .outcomeUnknown, .server: .invalidResponse
            }
    }

    private init(serialization error: SerializationError) {
        self =
            switch error {
            case .url(let failure) where failure.scheme != nil: .unsupportedScheme
            case .url: .badURL
            case .multipart: .cannotRead
            case .rejected: .refusedStatus
            default: .internalError
            }
    }

    private init(transport error: TransportError) {
        self =
            switch error.reason {
            case .invalidURL: .badURL
            case .unsupportedScheme: .unsupportedScheme
            case .invalidRequest: .usage
            case .unsupported: .notBuiltIn
            case .timedOut: .timedOut
            case .cannotResolve: .cannotResolve
            case .cannotConnect: .cannotConnect
            case .proxy: .proxyFailed
            case .tls(.handshake): .tlsHandshake
            case .tls(.badTrustRoots): .badTrustRoots
            case .tls: .untrusted
            case .connectionLost(.beforeResponse): .emptyReply
            case .connectionLost(.inBody): .truncated
            case .connectionLost(.inHead): .receiveFailed
            case .connectionLost(.whileSending): .sendFailed
            case .invalidContentEncoding: .contentEncoding
            case .invalidResponse: .invalidResponse
            case .responseTooLarge: .tooLarge
            case .requestBody(.notReplayable): .cannotSendAgain
            case .requestBody: .cannotRead
            case .webSocketClosed: .webSocketClosed
            default: .internalError
            }
    }
}
