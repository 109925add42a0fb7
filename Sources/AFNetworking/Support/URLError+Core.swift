// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The key of what a download that failed can be resumed with, a `Data`, in the user info of its error.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// What a task ended with.
struct TaskFailure {
    /// What its hooks hear.
    let raw: any Error
    /// What its completion handler hears, where that differs.
    let effective: any Error

    /// Translates an error of the core's.
    init(_ error: any Error, url: URL?) {
        if case .transport(.tls(let failure, let facts)) = error as? SessionError, failure.isVerdict {
            raw = URLError(.cancelled, url: url, underlying: error)
            effective = URLError(
                .serverCertificateUntrusted, url: url, underlying: error,
                text: """
                    The certificate for this server is invalid. You might be connecting to a server that is pretending \
                    to be “\(facts.host ?? url?.host ?? "")” which could put your confidential information at risk.
                    """)
            return
        }
        raw = URLError.of(error, url: url)
        effective = raw
    }
}

extension URLError {
    /// An error with the URL that failed.
    init(
        _ code: URLError.Code, url: URL?, underlying: (any Error)? = nil, text: String? = nil,
        resumeData: ResumeData? = nil
    ) {
        var userInfo: [String: Any] = [:]
        userInfo[NSURLSessionDownloadTaskResumeData] = resumeData?.archived
        userInfo[NSURLErrorFailingURLErrorKey] = url
        userInfo["NSErrorFailingURLStringKey"] = url?.absoluteString
        userInfo[NSUnderlyingErrorKey] = underlying
        userInfo[NSLocalizedDescriptionKey] = text ?? underlying.map { "\($0)" }
        self.init(code, userInfo: userInfo)
    }

    /// The error of Foundation's for one of the core's, which is underneath; others stay as they are.
    static func of(_ error: any Error, url: URL?) -> any Error {
        switch error {
        case is CancellationError: URLError(.cancelled, url: url, text: "cancelled")
        case let error as SessionError: URLError(error.code, url: url, underlying: error, resumeData: error.resumeData)
        default: error
        }
    }
}

extension SessionError {
    /// The number that says the same in Foundation's domain.
    fileprivate var code: URLError.Code {
        switch self {
        case .transport(let error): error.code
        case .serialization(.url): .badURL
        case .serialization: .cannotDecodeContentData
        case .redirect(.tooMany): .httpTooManyRedirects
        case .redirect(.bodyNotReplayable): .requestBodyStreamExhausted
        case .redirect: .redirectToNonExistentLocation
        case .notCached, .notResumable: .resourceUnavailable
        case .digest: .cannotDecodeRawData
        case .interrupted(let error, _): error.code
        case .file: .cannotWriteToFile
        case .authentication: .userAuthenticationRequired
        case .interceptor, .invalidated, .cookies: .unknown
        @unknown default: .unknown
        }
    }
}

extension TransportError {
    /// The number that says the same in Foundation's domain.
    fileprivate var code: URLError.Code {
        switch self {
        case .invalidRequest(.scheme): .unsupportedURL
        case .invalidRequest: .badURL
        case .timedOut: .timedOut
        case .cannotResolve: .cannotFindHost
        case .cannotConnect(.unreachable, _): .notConnectedToInternet
        case .cannotConnect(.systemTimeout, _): .timedOut
        case .cannotConnect, .proxy: .cannotConnectToHost
        case .tls(let failure, _): failure.code
        case .connectionLost: .networkConnectionLost
        case .invalidResponse(.contentEncoding, _): .cannotDecodeRawData
        case .invalidResponse: .badServerResponse
        case .responseTooLarge: .dataLengthExceedsMaximum
        case .requestBody(.notReplayable, _): .requestBodyStreamExhausted
        case .requestBody(.file, _): .fileDoesNotExist
        case .requestBody: .cannotDecodeContentData
        case .shutDown: .cancelled
        case .unsupported, .internalInconsistency: .unknown
        @unknown default: .unknown
        }
    }
}

extension TransportError.TLSFailure {
    /// Whether it is the verdict on a server that could be spoken to.
    fileprivate var isVerdict: Bool {
        switch self {
        case .handshake, .badTrustRoots, .badSecurityPolicy, .badClientIdentity, .clientCertificateRefused, .keyLog:
            false
        default: true
        }
    }

    fileprivate var code: URLError.Code {
        switch self {
        case .badClientIdentity, .clientCertificateRefused: .clientCertificateRejected
        case .handshake, .badTrustRoots, .badSecurityPolicy, .keyLog: .secureConnectionFailed
        default: .serverCertificateUntrusted
        }
    }
}
