// SPDX-License-Identifier: MIT

import AsyncNetworking

/// The user info key for the resume data of a failed download, a `Data` for
/// ``AFURLSessionManager/downloadTask(withResumeData:progress:destination:completionHandler:)``. Absent if the download
/// cannot be resumed, or was cancelled. The received bytes remain in a file of the temporary directory, even if the
/// download is never resumed. The data contains its path, the URL and the request's header fields, by default without
/// `Authorization` and `Cookie`.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// The errors with which a task fails.
struct TaskFailure {
    /// The error passed to blocks and delegate methods.
    let raw: any Error
    /// The error passed to the completion handler. It differs from `raw` for a rejected server certificate.
    let effective: any Error

    /// Converts a core error to `URLError`s with the core error as their underlying error. Other errors are left
    /// unchanged.
    init(_ error: any Error, url: URL?) {
        guard let failure = error as? SessionError else {
            raw = error is CancellationError ? URLError(.cancelled, url: url, text: "cancelled") : error
            effective = raw
            return
        }
        guard failure.code == .serverCertificateUntrusted else {
            raw = URLError(failure.code, url: url, underlying: failure, resumeData: failure.resumeData)
            effective = raw
            return
        }
        raw = URLError(.cancelled, url: url, underlying: failure)
        effective = URLError(
            failure.code, url: url, underlying: failure,
            text: """
                The certificate for this server is invalid. You might be connecting to a server that is pretending to be \
                “\(failure.context?.host ?? url?.host ?? "")” which could put your confidential information at risk.
                """)
    }
}

extension URLError {
    /// Creates an error with the URL that failed.
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
}

extension SessionError {
    /// The corresponding code in `NSURLErrorDomain`.
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
        case .noResponse, .secondResponse, .invalidated, .invalidCookie, .cookiesNotStored: .unknown
        @unknown default: .unknown
        }
    }
}

extension TransportError {
    /// The corresponding code in `NSURLErrorDomain`.
    fileprivate var code: URLError.Code {
        switch reason {
        case .unsupportedScheme: .unsupportedURL
        case .invalidURL, .invalidRequest: .badURL
        case .timedOut: .timedOut
        case .cannotResolve: .cannotFindHost
        case .cannotConnect(.unreachable): .notConnectedToInternet
        case .cannotConnect(.systemTimeout): .timedOut
        case .cannotConnect, .proxy: .cannotConnectToHost
        case .tls(let failure): failure.code
        case .connectionLost, .webSocketClosed: .networkConnectionLost
        case .invalidContentEncoding: .cannotDecodeRawData
        case .invalidResponse: .badServerResponse
        case .responseTooLarge: .dataLengthExceedsMaximum
        case .requestBody(.notReplayable): .requestBodyStreamExhausted
        case .requestBody(.file): .fileDoesNotExist
        case .requestBody: .cannotDecodeContentData
        case .shutDown: .cancelled
        case .unsupported, .internalInconsistency: .unknown
        @unknown default: .unknown
        }
    }
}

extension TransportError.TLSFailure {
    /// The corresponding code in `NSURLErrorDomain`. `serverCertificateUntrusted` is the rejection of a certificate, as
    /// opposed to a failed handshake.
    fileprivate var code: URLError.Code {
        switch self {
        case .badClientIdentity, .clientCertificateRefused: .clientCertificateRejected
        case .handshake, .badTrustRoots, .badSecurityPolicy, .keyLog: .secureConnectionFailed
        default: .serverCertificateUntrusted
        }
    }
}
