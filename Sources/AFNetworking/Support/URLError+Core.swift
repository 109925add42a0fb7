// SPDX-License-Identifier: MIT

public import AsyncNetworking

/// The user info key for the resume data of a failed download, or of one that was cancelled by
/// `cancel(byProducingResumeData:)`, a `Data` for
/// ``AFURLSessionManager/downloadTask(withResumeData:progress:destination:completionHandler:)``. The error of a serializer
/// has it, too, if the server rejected the continuation of a download. Absent if the download cannot be resumed. The
/// received bytes remain in a file of the temporary directory, even if the download is never resumed, but not if a
/// serializer accepts the rejection. The data contains its path, the URL and the request's header fields, by default
/// without `Authorization` and `Cookie`.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// The errors with which a task fails.
struct TaskFailure {
    /// The error passed to blocks and delegate methods.
    let raw: any Error
    /// The error passed to the completion handler. It differs from `raw` for a rejected server certificate.
    let effective: any Error

    /// Converts a core error to `URLError`s with the core error as their underlying error. Other errors are left
    /// unchanged.
    ///
    /// - Parameter resumeData: The data to resume a cancelled download with.
    init(_ error: any Error, url: URL?, resumeData: ResumeData? = nil) {
        guard let failure = error as? SessionError else {
            raw = error is CancellationError ? URLError(.cancelled, url: url, resumeData: resumeData) : error
            effective = raw
            return
        }
        let code = failure.code
        effective = URLError(code, url: url, underlying: failure)
        raw = code == .serverCertificateUntrusted ? URLError(.cancelled, url: url, underlying: failure) : effective
    }
}

extension URLError {
    /// Creates an error with the URL that failed and a description for users. The diagnosis is in the underlying error.
    init(_ code: URLError.Code, url: URL?, underlying: SessionError? = nil, resumeData: ResumeData? = nil) {
        var userInfo: [String: Any] = [:]
        userInfo[NSURLErrorFailingURLErrorKey] = url
        userInfo["NSErrorFailingURLStringKey"] = url?.absoluteString
        userInfo[NSUnderlyingErrorKey] = underlying
        userInfo[NSLocalizedDescriptionKey] = code.sentence(about: underlying?.context?.host ?? url?.host)
        let left = code == .cancelled ? resumeData : underlying?.resumeData
        userInfo[NSURLSessionDownloadTaskResumeData] = left?.archived
        if code == .serverCertificateUntrusted {
            userInfo[NSURLErrorFailingURLPeerTrustErrorKey] = underlying?.context?.serverTrust
        }
        self.init(code, userInfo: userInfo)
    }

    /// The certificates that the server presented, if the error is that of an untrusted server
    /// (`serverCertificateUntrusted`); otherwise `nil`.
    public var failureURLPeerTrust: SecTrust? { errorUserInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust }
}

extension URLError.Code {
    /// The description of the error for users, worded like that on Apple's platforms in English.
    ///
    /// - Parameter host: The host of the request, if it has one.
    fileprivate func sentence(about host: String?) -> String {
        switch self {
        case .cancelled: "cancelled"
        case .badURL: "bad URL"
        case .timedOut: "The request timed out."
        case .unsupportedURL: "unsupported URL"
        case .cannotFindHost: "A server with the specified hostname could not be found."
        case .cannotConnectToHost: "Could not connect to the server."
        case .networkConnectionLost: "The network connection was lost."
        case .httpTooManyRedirects: "too many HTTP redirects"
        case .resourceUnavailable: "resource unavailable"
        case .notConnectedToInternet: "The Internet connection appears to be offline."
        case .redirectToNonExistentLocation: "redirected to non-existent location"
        case .badServerResponse: "There was a bad response from the server."
        case .userAuthenticationRequired: "User authentication required"
        case .cannotDecodeRawData: "cannot decode raw data"
        case .cannotDecodeContentData: "cannot decode content data"
        case .requestBodyStreamExhausted: "request body stream exhausted"
        case .fileDoesNotExist: "The requested URL was not found on this server."
        case .dataLengthExceedsMaximum: "resource exceeds maximum size"
        case .secureConnectionFailed:
            "An SSL error has occurred and a secure connection to the server cannot be made."
        case .serverCertificateUntrusted:
            """
            The certificate for this server is invalid. You might be connecting to a server that is pretending to be \
            “\(host ?? "")” which could put your confidential information at risk.
            """
        case .clientCertificateRejected: "The server “\(host ?? "")” did not accept the certificate."
        case .cannotWriteToFile: "cannot write to file"
        default: "unknown error"
        }
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
        case .digest, .size: .cannotDecodeRawData
        case .interrupted(let error, _): error.code
        case .file: .cannotWriteToFile
        case .authentication: .userAuthenticationRequired
        case .upload: .requestBodyStreamExhausted
        case .circuitOpen: .cannotConnectToHost
        case .closedResponse, .invalidated, .invalidCookie, .cookiesNotStored: .unknown
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

// MARK: Casts

// On Apple's platforms every error can be cast to `NSError`. On Linux the run-time library casts a value to a class,
// and back, only if the type of the value conforms to `_ObjectiveCBridgeable`, as `CocoaError` does. `URLError` does
// not, so that `error as! NSError` terminates the program, and `catch let error as NSError` does not match.
//
// The conformance is sound: a `URLError` consists of one immutable `NSError`, which is the result of the cast, and any
// error of its domain makes one. Another module with the same conformance could only bridge to the same class with the
// same result, so that it does not matter which of the two the run-time library finds. If Foundation declares it, this
// file no longer compiles. It is in the file of the errors because a linker takes only the files of a static library
// that others refer to.

extension URLError: @retroactive _ObjectiveCBridgeable {
    /// Returns the error as the `NSError` of which it consists, for a cast such as `error as? NSError`.
    public func _bridgeToObjectiveC() -> NSError { _nsError }

    /// Stores the error of which `source` is the object, if it has the domain `NSURLErrorDomain`, for a cast such as
    /// `error as! URLError`.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout URLError?) {
        _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
    }

    /// Stores the error of which `source` is the object, if it has the domain `NSURLErrorDomain`, for a cast such as
    /// `error as? URLError`. Returns whether it has.
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout URLError?) -> Bool {
        guard source.domain == NSURLErrorDomain else { return false }
        result = URLError(_nsError: source)
        return true
    }

    /// Returns the error of which `source` is the object; an unknown error if it has another domain.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> URLError {
        var result: URLError?
        if let source { _ = _conditionallyBridgeFromObjectiveC(source, result: &result) }
        return result ?? URLError(.unknown)
    }
}

/// An error of AsyncNetworking that can be cast to `NSError` and back: the underlying errors of this module's errors.
/// Programs need not adopt it.
public protocol ErrorWithObject: Error, _ObjectiveCBridgeable where _ObjectiveCType == NSError {}

extension ErrorWithObject {
    /// Returns an `NSError` that contains the error, with its description.
    public func _bridgeToObjectiveC() -> NSError {
        NSError(
            domain: _domain, code: _code,
            userInfo: [NSLocalizedDescriptionKey: "\(self)", NSError.contentKey: self])
    }

    /// Stores the error that `source` contains, if it is one of this type.
    public static func _forceBridgeFromObjectiveC(_ source: NSError, result: inout Self?) {
        _ = _conditionallyBridgeFromObjectiveC(source, result: &result)
    }

    /// Stores the error that `source` contains, if it is one of this type. Returns whether it is.
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSError, result: inout Self?) -> Bool {
        result = source.content as? Self
        return result != nil
    }
}

extension SessionError: ErrorWithObject {
    /// Returns the error that `source` contains; an internal inconsistency if it contains none.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> SessionError {
        source?.content as? SessionError
            ?? .transport(TransportError(.internalInconsistency("The object contains no SessionError.")))
    }
}

extension SerializationError: ErrorWithObject {
    /// Returns the error that `source` contains; an error that contains `source` if it is another one.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSError?) -> SerializationError {
        source?.content as? SerializationError ?? .compound(source.map { [$0] } ?? [])
    }
}

extension NSError {
    /// The error of Swift that the object contains, if any.
    fileprivate var content: Any? { userInfo[Self.contentKey] }
    fileprivate static let contentKey = "AsyncNetworking.Error"
}

extension NSError {
    /// Returns an error of a request serializer, with a human-readable failure reason.
    static func requestSerialization(_ code: URLError.Code, reason: String, underlying: (any Error)? = nil) -> NSError {
        var userInfo: [String: Any] = [NSLocalizedFailureReasonErrorKey: reason]
        userInfo[NSUnderlyingErrorKey] = underlying
        return NSError(domain: AFURLRequestSerializationErrorDomain, code: code.rawValue, userInfo: userInfo)
    }

    /// Returns the error of a request serializer for an error of the core's.
    static func requestSerialization(_ error: SerializationError) -> NSError {
        requestSerialization(.cannotDecodeContentData, reason: "\(error)", underlying: error)
    }

    /// Returns the outer error with the inner one as its underlying error. Returns the outer error unchanged if it
    /// already has an underlying error or `inner` is `nil`, and the inner error if `outer` is `nil`.
    static func combined(_ outer: NSError?, underlying inner: NSError?) -> NSError? {
        guard let outer else { return inner }
        guard let inner, outer.userInfo[NSUnderlyingErrorKey] == nil else { return outer }
        var userInfo = outer.userInfo
        userInfo[NSUnderlyingErrorKey] = inner
        return NSError(domain: outer.domain, code: outer.code, userInfo: userInfo)
    }

    /// Returns the error with a request added to its user info, unless it already has one.
    ///
    /// - Parameter domain: The domain of the errors to change. Errors of other domains, which may be the program's own,
    ///   are returned unchanged. `nil` for all domains.
    func about(_ request: URLRequest, inDomain domain: String? = nil) -> NSError {
        guard domain == nil || domain == self.domain else { return self }
        return adding([AFNetworkingOperationFailingURLRequestErrorKey: request])
    }

    /// Returns the error with entries added to its user info. Existing entries are kept.
    func adding(_ entries: [String: Any]) -> NSError {
        NSError(domain: domain, code: code, userInfo: userInfo.merging(entries) { own, _ in own })
    }

    /// Whether this error, or an underlying one at any depth, has the given domain and code.
    func contains(_ domain: String, _ code: URLError.Code) -> Bool {
        if self.domain == domain, self.code == code.rawValue { return true }
        return (userInfo[NSUnderlyingErrorKey] as? NSError)?.contains(domain, code) ?? false
    }
}
