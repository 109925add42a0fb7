// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
public import FoundationEssentials

// SessionError
// ├── transport        the exchange failed: see ``TransportError``
// ├── serialization    the request could not be made, or the response was not taken: see ``SerializationError``
// ├── redirect         a redirect was not followed
// ├── authentication   a request could not show who makes it
// ├── cookies          a cookie could not be set
// ├── notCached        the request wanted a response from a cache, and nothing else
// ├── interceptor      an interceptor did not keep to its protocol
// ├── file             a download could not be written
// ├── notResumable     a download could not be continued, and was not to start over
// ├── digest           a download has not the digest that it must have
// ├── interrupted      a download has failed for one of these reasons, and can be continued
// └── invalidated      the manager takes no more requests

/// What the functions of a ``SessionManager`` throw, besides `CancellationError`.
@nonexhaustive
public indirect enum SessionError: Error, Sendable {
    /// The exchange failed.
    case transport(TransportError)
    /// The request could not be made of its parameters, or the response was not what was wanted.
    case serialization(SerializationError)
    /// A redirect was not followed.
    case redirect(RedirectProblem)
    /// The request could not show who makes it.
    case authentication(AuthenticationProblem)
    /// A cookie could not be set.
    case cookies(CookieProblem)
    /// The request wanted a response from a cache, and nothing else. See ``CachePolicy/returnCacheDataDontLoad``.
    case notCached
    /// An interceptor, whose type is given, did not keep to its protocol.
    case interceptor(InterceptorProblem, type: String)
    /// A download could not be written.
    case file(FileProblem)
    /// A download could not be continued, and ``DownloadOptions/whenNotResumable`` says that this is a failure.
    case notResumable(ResumeProblem)
    /// A download has not the digest that the program expects, or that its server says it has.
    case digest(DigestMismatch)
    /// A download has failed for this reason; what has come of it is there to go on with.
    case interrupted(by: SessionError, ResumeData)
    /// The manager was invalidated or shut down before.
    case invalidated

    /// Why a redirect was not followed.
    public enum RedirectProblem: Hashable, Sendable {
        /// There were more than this.
        case tooMany(limit: Int)
        /// `Location`, given as it came, is not the URL of an http or https resource.
        case location(String)
        /// It leads from https to http.
        case downgrade(to: String)
        /// The body would have to be sent again and cannot be. See ``ANHTTP/RequestBody/isReplayable``.
        case bodyNotReplayable
    }

    /// Why a request could not show who makes it.
    public enum AuthenticationProblem: Hashable, Sendable {
        /// A challenge came after the body, which would have to be sent again and cannot be. A credential that names one
        /// scheme goes before the body. See ``ANHTTP/RequestBody/isReplayable``.
        case bodyNotReplayable
        /// There were so many refreshes within ``Authenticator/refreshPeriod``.
        case excessiveRefreshes(limit: Int)
    }

    /// Why a cookie could not be set.
    public enum CookieProblem: Hashable, Sendable {
        /// The transport keeps no cookies.
        case notKept
        /// A part of the cookie with this name is missing, or has a character that cannot be sent.
        case invalid(name: String)
    }

    /// What an interceptor did wrong.
    public enum InterceptorProblem: Hashable, Sendable {
        /// It returned without a response and without an error.
        case noResponse
        /// It responded a second time.
        case secondResponse
    }
}

extension SessionError {
    /// Whether a limit on time ran out.
    public var isTimeout: Bool {
        if case .transport(.timedOut) = cause { true } else { false }
    }

    /// Whether no connection could be made: name look-up, TCP, or the proxy.
    public var isConnectionFailure: Bool {
        switch cause {
        case .transport(.cannotResolve), .transport(.cannotConnect), .transport(.proxy): true
        default: false
        }
    }

    /// Whether the server is not trusted, or TLS failed otherwise.
    public var isTrustFailure: Bool {
        if case .transport(.tls) = cause { true } else { false }
    }

    /// The status of a response that was rejected.
    public var statusCode: Int? { rejection?.status }

    /// The body of a response that was rejected.
    public var responseBody: Data? { rejection?.body }

    /// A response that came and was rejected.
    public var rejection: Rejection? {
        if case .serialization(let error) = cause { error.rejection } else { nil }
    }

    /// The attempts before the last one, and why there was no further one.
    public var retries: RetryHistory {
        if case .transport(let error) = cause { return error.facts?.retries ?? RetryHistory() }
        return rejection?.head.retries ?? RetryHistory()
    }

    /// Lifts an error of a lower floor; others, such as a caller's own, pass as they are.
    static func lifting(_ error: any Error) -> any Error {
        switch error {
        case let error as TransportError: SessionError.transport(error)
        case let error as SerializationError: SessionError.serialization(error)
        default: error
        }
    }
}

extension SessionError: CustomStringConvertible {
    /// A sentence that says what happened and what to check.
    public var description: String {
        switch self {
        case .transport(let error): error.description
        case .serialization(let error): error.description
        case .redirect(let problem): problem.description
        case .authentication(let problem): problem.description
        case .cookies(.notKept): "The transport of this session keeps no cookies."
        case .cookies(.invalid(let name)): "The cookie “\(name)” has a part that is missing or cannot be sent."
        case .notCached: "The response is not cached, and the request asks for nothing else."
        case .interceptor(.noResponse, let type): "The interceptor \(type) returned without a response."
        case .interceptor(.secondResponse, let type): "The interceptor \(type) responded twice."
        case .file(let problem): problem.description
        case .notResumable(let problem): problem.description
        case .digest(let mismatch): mismatch.description
        case .interrupted(let error, let data): "\(error) The download can be continued after \(data.offset) bytes."
        case .invalidated: "The session manager was invalidated; make a new one."
        }
    }
}

extension SessionError.AuthenticationProblem: CustomStringConvertible {
    /// A sentence that says what happened.
    public var description: String {
        switch self {
        case .bodyNotReplayable:
            "The server asks for a credential, and the body of the request cannot be sent a second time."
        case .excessiveRefreshes(let limit):
            "The token was refreshed \(limit) times in a short while; the server may not take it at all."
        }
    }
}

extension SessionError.RedirectProblem: CustomStringConvertible {
    /// A sentence that says what happened.
    public var description: String {
        switch self {
        case .tooMany(let limit): "The server redirected more than \(limit) times; it may be a loop."
        case .location(let text):
            "The server redirected to “\(URL(string: text)?.redactedDescription ?? "…")”, which is no http or https URL."
        case .downgrade(let url): "The server redirected from https to \(url), which would not be encrypted."
        case .bodyNotReplayable: "The server redirected a request whose body cannot be sent a second time."
        }
    }
}
