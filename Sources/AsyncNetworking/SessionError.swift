// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANReachability
public import ANSerialization
import ANSystem
public import FoundationEssentials

// SessionError
// ├── transport        an exchange failed: see ``TransportError``
// ├── serialization    a request could not be created, or a response was rejected: see ``SerializationError``
// ├── redirect         a redirect could not be followed
// ├── authentication   a request could not be authenticated
// ├── invalidCookie    a cookie could not be set
// ├── cookiesNotStored a cookie could not be set
// ├── notCached        the request accepts only a cached response
// ├── closedResponse   an interceptor returned a response that was closed
// ├── file             a file could not be read or written
// ├── notResumable     a download could not be resumed, and must not start over
// ├── digest           a download has a wrong digest
// ├── size             a download has another size than expected
// ├── upload           a resumable upload cannot go on
// ├── circuitOpen      a circuit breaker has refused the request
// ├── interrupted      a download failed for one of these reasons and can be resumed
// └── invalidated      the manager accepts no more requests

/// The error that the functions of a ``SessionManager`` throw, besides `CancellationError` and the errors of the
/// program's own code, such as interceptors and serializers.
///
/// It wraps the errors of lower layers; ``transport``, ``serialization`` and ``rejection`` return them, also for a
/// download that can be resumed. Statuses such as 404 are errors only if a serializer or validation rejects them, and
/// for downloads, event sources and WebSocket connections.
@nonexhaustive
public indirect enum SessionError: Error, Sendable {
    /// The exchange failed, for example because a timeout expired, no connection could be established, or the server is
    /// not trusted; see ``ANHTTP/TransportError/reason-swift.property``.
    case transport(TransportError)
    /// The request could not be created from its parameters, or the response was rejected or could not be deserialized.
    case serialization(SerializationError)
    /// A redirect could not be followed; see ``RedirectFailure``. Redirects that the policy does not follow are
    /// responses, not errors.
    case redirect(RedirectFailure)
    /// The request could not be authenticated; see ``AuthenticationFailure``. A challenge that no credential answers is
    /// a response or, if a proxy refuses to open a tunnel, an error of the exchange.
    case authentication(AuthenticationFailure)
    /// A cookie could not be set: the name or domain of the cookie with this name is empty, its name contains `=` or
    /// `;`, its value contains `;`, its domain begins with `#`, its path does not begin with a slash, one of these
    /// contains a control character, or its name begins with `__Secure-` or `__Host-` and it lacks the attributes that
    /// this requires (RFC 6265bis §4.1.3). The same call has set no other cookie.
    case invalidCookie(name: String)
    /// A cookie could not be set, because the transport stores no cookies. That of libcurl does, unless libcurl cannot
    /// be set up; one of the program's own, such as a mock, does not.
    case cookiesNotStored
    /// The request accepts only a cached response, and there is none that it may use without validation, or the session
    /// has no cache; nothing was sent. See ``CachePolicy/returnCacheDontLoad``.
    case notCached
    /// An ``Interceptor``, whose type is given, returned a response after sending another request, which closed it.
    case closedResponse(ofInterceptor: String)
    /// A file, such as that of a download or of a cookie store, could not be read or written; see
    /// ``FileFailure/reason-swift.property``.
    case file(FileFailure)
    /// A download could not be resumed, and ``DownloadOptions/startsOverIfNotResumable`` is `false`; or, regardless of
    /// that option, the server sent a range (status 206) that the download did not ask for, also if the program's
    /// request has a `Range` field, or not the bytes of the range that it announced.
    case notResumable(ResumeFailure)
    /// The content of a download does not have the digest that the program or the server specified. `path` is the file
    /// that was to be written; if a closure was to choose it, the directory of the temporary file. `url` is that of the
    /// request, before redirects.
    ///
    /// The downloaded bytes were removed, except those written to a device, so the download cannot be resumed. If pieces
    /// have digests of their own, only those that are wrong are removed, and the error is ``interrupted(by:_:)``. A cached
    /// response from which they came is removed as well.
    case digest(expected: ContentDigest, found: ContentDigest, path: String, url: URL)
    /// The file of a download has another size, in bytes, than ``DownloadOptions/pieceDigests``. `url` is that of the
    /// request, before redirects.
    case size(expected: Int64, found: Int64, url: URL)
    /// A resumable upload cannot go on; see ``UploadFailure``.
    case upload(UploadFailure)
    /// A ``CircuitBreaker`` has not sent the request to this host, because earlier ones have failed. After the given time
    /// another one may be sent.
    case circuitOpen(host: String, retryAfter: Duration)
    /// A download failed for this reason, and can be resumed with this data; see
    /// ``SessionManager/download(resuming:with:to:options:)``.
    case interrupted(by: SessionError, ResumeData)
    /// The manager was invalidated or shut down before the request, which was not sent. Requests that are running at
    /// that time throw `CancellationError` instead if the manager cancels them.
    case invalidated

    /// The reason why a redirect could not be followed.
    public enum RedirectFailure: Hashable, Sendable {
        /// The server redirected more often than ``RedirectPolicy/maximum`` permits, perhaps in a loop. The redirect that
        /// was not followed leads to this URL, given without user information and query values.
        case tooMany(limit: Int, to: String)
        /// The value of `Location`, given as received, does not lead to an http or https URL with a host.
        case location(String)
        /// The redirect leads from https to this http URL, given without user information and query values.
        case downgrade(to: String)
        /// The body would have to be sent again, and is not replayable. See ``ANHTTP/RequestBody/isReplayable``.
        case bodyNotReplayable
    }

    /// The reason why a request could not be authenticated.
    public enum AuthenticationFailure: Hashable, Sendable {
        /// The request would have to be sent again, to answer a challenge or with a refreshed token, and its body is
        /// not replayable (``ANHTTP/RequestBody/isReplayable``). To avoid a challenge, use a credential that names a
        /// single scheme: it is used with the first request.
        case bodyNotReplayable
        /// The token was refreshed `limit` times within the `refreshPeriod` of the ``Authenticator``, and the request
        /// needs another refresh. Later requests can refresh it again when fewer refreshes fall within that period.
        case excessiveRefreshes(limit: Int)
    }
}

extension SessionError {
    /// The error of the failed exchange, also that of an interrupted download; `nil` if this error has another cause,
    /// such as a rejected response or a file that cannot be written.
    public var transport: TransportError? {
        if case .transport(let error) = cause { error } else { nil }
    }

    /// The error of creating the request or of validating and deserializing the response, also that of an interrupted
    /// download; `nil` if this error has another cause, such as a failed exchange.
    public var serialization: SerializationError? {
        if case .serialization(let error) = cause { error } else { nil }
    }

    /// The reason why the exchange failed, also that of an interrupted download; `nil` if this error has another cause,
    /// such as a rejected response.
    public var reason: TransportError.Reason? { transport?.reason }

    /// The details of the failed exchange, such as its URL, address and duration, also that of an interrupted download;
    /// `nil` if this error has another cause, such as a rejected response.
    public var context: FailureContext? { transport?.context }

    /// Whether a timeout expired: one of ``ANHTTP/Timeouts``, `Request.timeout`, ``RetryPolicy/deadline``, or
    /// ``ANHTTP/WebSocketOptions/pingTimeout``. The system's own timeout while connecting (`ETIMEDOUT`) is not
    /// included; it is a connection failure, see ``isConnectionFailure``. Also `true` for a download that a timeout
    /// interrupted.
    public var isTimeout: Bool {
        if case .timedOut = reason { true } else { false }
    }

    /// Whether no connection could be established: name resolution, TCP, or the proxy failed, or the address is
    /// forbidden or cannot be used. Failures of TLS with the proxy itself are included, unless the proxy is set by
    /// environment variables, and so are credentials that the proxy refused.
    ///
    /// An expired timeout and a failure of TLS with the server are not included; see ``isTimeout`` and
    /// ``isTrustFailure``.
    public var isConnectionFailure: Bool {
        switch reason {
        case .cannotResolve, .cannotConnect, .proxy: true
        default: false
        }
    }

    /// Whether the server is not trusted, its certificate could not be verified, or TLS failed for another reason, such
    /// as an interrupted handshake, trusted certificates that cannot be read, or a client certificate that cannot be
    /// used. A failure of TLS with a proxy is included only if the proxy is set by environment variables; see
    /// ``isConnectionFailure``.
    public var isTrustFailure: Bool {
        if case .tls = reason { true } else { false }
    }

    /// The status code of the rejected response, such as 404, or that of a success if only the media type was rejected;
    /// `nil` if this error is not a rejection.
    public var statusCode: Int? { rejection?.status }

    /// The body of the rejected response, such as the error message of an API; empty if the response had none, `nil` if
    /// this error is not a rejection. If the body was to be streamed, as for
    /// ``SessionManager/withResponse(for:validating:reporting:_:)``, an event source or a WebSocket connection, these are
    /// the first 64 KiB, and for a download the first 1 MiB, as far as they arrive within a second.
    public var responseBody: Data? { rejection?.body }

    /// The rejected response, with its head and body, also that of an interrupted download; `nil` if this error is not
    /// a rejection because of the status or media type, but for example a failed exchange, or a body that could not be
    /// deserialized.
    public var rejection: Rejection? { serialization?.rejection }

    /// The attempts before the last one, and the reason why there was no further attempt. There are no attempts if the
    /// request was sent once, and for errors other than failed exchanges and rejected responses, such as a body that
    /// could not be deserialized.
    public var retryHistory: RetryHistory {
        context?.retryHistory ?? rejection?.head.retryHistory ?? RetryHistory()
    }

    /// Wraps an error of a lower layer; returns other errors, such as the caller's own, unchanged.
    static func lifting(_ error: any Error) -> any Error {
        switch error {
        case let error as TransportError: SessionError.transport(error)
        case let error as SerializationError: SessionError.serialization(error)
        default: error
        }
    }

    /// Returns an error of what precedes the sending of a request, such as the exchange of a refresh, with a note that it is
    /// not one of the request.
    static func precedingSending(_ error: any Error) -> any Error {
        guard var failure = lowering(error) as? TransportError else { return error }
        failure.context.precedesSending = true
        return error is SessionError ? SessionError.transport(failure) : failure
    }

    /// Returns the failure of an exchange that a session's error wraps; returns other errors unchanged.
    static func lowering(_ error: any Error) -> any Error {
        if case SessionError.transport(let failure) = error { failure } else { error }
    }
}

extension SessionError: CustomStringConvertible, LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`; never `nil`.
    public var errorDescription: String? { description }

    /// Text in English that says what happened and, where it helps, what to check. For a response that was rejected, or
    /// whose body could not be parsed or decoded, it contains a part of the body, which may be secret.
    public var description: String { sentence.printable }

    private var sentence: String {
        switch self {
        case .transport(let error): error.description
        case .serialization(let error): error.description
        case .redirect(let failure): failure.sentence
        case .authentication(let failure): failure.sentence
        case .cookiesNotStored: "The transport of this session stores no cookies."
        case .invalidCookie(let name):
            "\(name.isEmpty ? "A cookie without a name" : "The cookie “\(name)”") has a part that is missing or cannot be sent; a name with the prefix __Secure- or "
                + "__Host- requires isSecure, and the latter the path / and no subdomains."
        case .notCached: "The response is not cached, and the request accepts only a cached one."
        case .closedResponse(let type):
            "The interceptor \(type) returned a response that its next request had closed; return the last one."
        case .file(let failure): failure.description
        case .notResumable(let failure): failure.description
        case .digest(let expected, let found, let path, let url):
            "The digest of \(path) from \(url.redactedDescription) is \(found), but \(expected) is expected."
        case .size(let expected, let found, let url):
            "The file at \(url.redactedDescription) has \(found) bytes or more, but \(expected) are expected."
        case .upload(let failure): failure.sentence
        case .circuitOpen(let host, let wait):
            "The request was not sent, because earlier ones to \(host) have failed; try again in \(wait)."
        case .interrupted(let error, let data): "\(error) The download can be resumed after \(data.offset) bytes."
        case .invalidated: "The session manager was invalidated; create a new one."
        }
    }
}

extension SessionError.AuthenticationFailure {
    /// A sentence that says what happened.
    package var sentence: String {
        switch self {
        case .bodyNotReplayable:
            "The server asks for a credential, and the body of the request cannot be sent a second time."
        case .excessiveRefreshes(let limit):
            "The token was refreshed \(limit) times in a short time; the server may not accept it at all."
        }
    }
}

extension SessionError.RedirectFailure {
    /// A sentence that says what happened.
    package var sentence: String {
        switch self {
        case .tooMany(let limit, let url):
            "The server redirected more than \(limit) times, the last time to \(url); it may be a loop."
        case .location(let text):
            "The server redirected to “\(URL(string: text)?.redactedDescription ?? "…")”, which is not an http or https URL."
        case .downgrade(let url): "The server redirected from https to \(url), which would not be encrypted."
        case .bodyNotReplayable: "The server redirected a request whose body cannot be sent a second time."
        }
    }
}

extension SessionError.UploadFailure {
    /// A sentence that says what happened.
    package var sentence: String {
        switch self {
        case .bodyNotResumable:
            "The upload cannot be resumed: its body can be read only once, or its length is unknown."
        case .sourceChanged: "The file was changed while it was uploaded; upload it again."
        case .tooLarge(let maximum):
            "The server does not accept an upload of this size\(maximum.map { ", but at most \($0) bytes" } ?? "")."
        case .outcomeUnknown: "The server has forgotten the upload after its last byte; it may have completed it."
        case .server(let text): "The server cannot resume the upload: \(text)."
        }
    }
}

// The errors of downloads other than those of transfers.

extension SessionError {
    /// The failure of a file operation: the path, the system's error, and its ``reason``.
    public struct FileFailure: Hashable, Sendable {
        /// The path of the file or directory; for a download whose path a closure chooses, possibly that of the
        /// directory for temporary files.
        public var path: String
        /// The system call that failed.
        package var call: String
        /// The value of `errno` after the system call that failed, such as `ENOENT`; see errno(3).
        public var errno: Int32
        /// The system's message for `errno`.
        package var message: String

        /// Creates the value, for testing error handling.
        package init(path: String, call: String, errno: Int32, message: String) {
            self.path = path
            self.call = call
            self.errno = errno
            self.message = message
        }

        init(path: String, _ error: SystemError) {
            self.init(path: path, call: error.call, errno: error.code, message: SystemError.message(for: error.code))
        }

        /// The reason, derived from ``errno``; `other` if it is not one that a program can act on.
        public var reason: Reason { Reason(SystemError(call: call, code: errno).fileReason) }

        /// The reason of a failed file operation, as far as a program can act on it.
        @nonexhaustive
        public enum Reason: Hashable, Sendable {
            /// The disk or the user's quota is full (`ENOSPC`, `EDQUOT`), or the file would exceed the maximum size of
            /// the file system or the process (`EFBIG`); see ``FileFailure/errno``.
            case noSpace
            /// The user lacks permission (`EACCES`, `EPERM`), or the file system is read-only (`EROFS`).
            case notPermitted
            /// The file already exists and must not be overwritten, or the path that a closure chose leads to a device,
            /// a pipe or a socket (`EEXIST`). If the path is that of the record of an unfinished durable download, the
            /// destination is one of its two files.
            case exists
            /// A directory of the path, or a file to be read, does not exist, or a part of the path is not a directory
            /// (`ENOENT`, `ENOTDIR`).
            case missingDirectory
            /// Another download, possibly of another process, is writing the file and has locked it (`EWOULDBLOCK`, see
            /// flock(2)).
            case inUse
            /// Another reason, such as a directory in place of the file; see ``FileFailure/errno``.
            case other

            init(_ reason: SystemError.FileReason) {
                self =
                    switch reason {
                    case .noSpace: .noSpace
                    case .notPermitted: .notPermitted
                    case .exists: .exists
                    case .missing: .missingDirectory
                    case .inUse: .inUse
                    case .isDirectory, .otherFileSystem, .other: .other
                    }
            }
        }
    }

    /// The reason why a download could not be resumed: the resource has changed, its version is unknown, the request is
    /// not a GET without `Range` or asks for another representation, the server sent no range or a wrong one, or the partial file is missing or too short.
    public struct ResumeFailure: Hashable, Sendable, CustomStringConvertible {
        /// A sentence with the reason, such as `The download cannot be resumed: the resource has changed.`
        public let description: String
    }

    /// The reason why a resumable upload cannot go on.
    @nonexhaustive
    public enum UploadFailure: Hashable, Sendable {
        /// The body cannot be sent a second time, or its length is unknown. See
        /// ``ANHTTP/RequestBody/isReplayable``.
        case bodyNotResumable
        /// The file, or that of a part of a form, was changed since the upload began. The bytes that the server had were
        /// removed, if it supports that.
        case sourceChanged
        /// The body is larger than the server accepts: at most this number of bytes, or `nil` if that is unknown.
        case tooLarge(maximum: Int64?)
        /// The server has forgotten the upload after all bytes were sent, so that it has perhaps completed it. An upload
        /// with an idempotent method, or with an `Idempotency-Key`, is created again instead.
        case outcomeUnknown
        /// The server does not follow the protocol, or makes no progress. The text describes what it did.
        case server(String)
    }

    /// The data to resume the failed download with; `nil` if this error is not ``interrupted(by:_:)``, for example
    /// because no bytes arrived or the download cannot be resumed.
    public var resumeData: ResumeData? {
        if case .interrupted(_, let data) = self { data } else { nil }
    }

    /// The reason why the download failed if this error is ``interrupted(by:_:)``, otherwise the error itself.
    public var cause: SessionError {
        if case .interrupted(let error, _) = self { error } else { self }
    }

    static func file(_ path: String, _ error: SystemError) -> SessionError {
        .file(FileFailure(path: path, error))
    }
}

extension SessionError.FileFailure: CustomStringConvertible {
    /// The path, the system's message and the system call, with advice if a directory is missing or the file is in use.
    public var description: String {
        let advice =
            switch reason {
            case .missingDirectory:
                "; create the directory, or for a download set createsIntermediateDirectories of its destination"
            case .inUse: "; another download, possibly in another process, is writing this file"
            default: ""
            }
        return "\(path): \(message) (\(call))\(advice)"
    }
}

extension SessionError.ResumeFailure {
    /// The resource has changed since the bytes were downloaded.
    package static let changed = Self("the resource has changed")
    /// The server sent the whole file instead of the requested range.
    package static let rangesNotSupported = Self("the server sends only the whole file")

    /// Creates the failure of a server that sent another range than the requested one, with its `Content-Range`, if
    /// any.
    package static func wrongRange(_ text: String?) -> Self {
        Self("the server sent a wrong range\(text.map { " (\($0))" } ?? "")")
    }

    /// The version of the bytes is unknown, because the server sent no strong validator, or the request is not a GET
    /// without `Range`.
    package static let noValidator = Self("without a strong validator it is unknown whether the resource has changed")

    /// The request selects another representation of the resource, for example by `Accept-Language`.
    package static let otherRequest = Self("the request asks for another representation of the resource")
    /// The server sends the file in too many small parts.
    package static let tooManyParts = Self("the server sends the file in too many parts")

    /// Creates the failure of a partial file that is missing or too short.
    package static func partialFile(_ path: String) -> Self { Self("\(path) is missing or too short") }

    private init(_ reason: String) {
        description = "The download cannot be resumed: \(reason.printable)."
    }
}

extension ReachabilityError: LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }
}
