// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// How requests show who makes them.
///
/// ```swift
/// let api = SessionManager(baseURL: url) {
///     $0.authentication.credentials[url] = Credential(user: "ada", password: password)
/// }
/// ```
///
/// For each request to an origin, the first of these that there is:
///
/// | what | how |
/// |---|---|
/// | an `Authorization` field of the request or session | is sent as it is, and challenges of the server are responses like others |
/// | ``signatures`` for the host | the request is signed |
/// | ``authenticators`` for the origin | a bearer token goes with the request, refreshed where it has to be |
/// | `Request.credential`, then ``credentials``, then the ``passwordFile`` | answers a challenge; a credential that names Basic alone goes with the first request |
/// | ``challengeHandler`` | is asked when there is no credential, or when it was refused |
///
/// A 401 that nobody answers is a response like others, and so is the last one of a series. Those that were answered are
/// not seen: nothing of their bodies gets into the final one. What a server has accepted is remembered for the
/// protection space, and goes with later requests to it from the start; it never goes to another origin, redirects included.
public struct AuthenticationPolicy: Sendable {
    /// Credentials, each for one origin.
    public var credentials = OriginCredentials()
    /// A `.netrc`, for hosts without one of ``credentials``; nil, the default, reads none.
    public var passwordFile: PasswordFile?
    /// Signatures for Amazon's services; the first one for a host counts.
    public var signatures: [AWSSignature] = []
    /// Bearer tokens; the first one for an origin counts.
    public var authenticators: [Authenticator] = []
    /// Asked about challenges that no credential answers.
    ///
    /// It runs in the task that makes the request. What it throws ends the request, as it is. A credential that it returns
    /// for the second time within one request, although it was refused, ends the questions.
    public var challengeHandler: (@Sendable (AuthenticationChallenge) async throws -> AuthenticationChallenge.Answer)?
    /// How many credentials are tried for one request before a challenge is the response; 5 by default.
    public var maximumAnswers = 5

    /// Creates a policy that answers nothing.
    public init() {}

    /// The policy of requests that show nothing.
    public static let none = AuthenticationPolicy()

    /// Whether there is anything to do.
    var isActive: Bool { answersChallenges || !signatures.isEmpty || !authenticators.isEmpty }

    /// Whether challenges may have an answer.
    var answersChallenges: Bool { !credentials.isEmpty || challengeHandler != nil || passwordFile != nil }

    /// The session's credential for an origin.
    func credential(for origin: Origin) -> Credential? {
        credentials[origin] ?? passwordFile?.credential(for: origin)
    }
}

/// Credentials, each for one origin: scheme, host and port. Its description shows no passwords.
public struct OriginCredentials: Hashable, Sendable, CustomStringConvertible {
    private var values: [Origin: Credential] = [:]

    /// Creates an empty collection.
    public init() {}

    /// The credential for the origin of a URL; its path does not matter.
    public subscript(_ url: URL) -> Credential? {
        get { values[Origin(url)] }
        set { values[Origin(url)] = newValue }
    }

    /// Whether there is none.
    public var isEmpty: Bool { values.isEmpty }

    subscript(_ origin: Origin) -> Credential? { values[origin] }

    /// The origins and their users.
    public var description: String {
        values.map { "\($0.key): \($0.value)" }.sorted().joined(separator: ", ")
    }
}

extension Request {
    /// The credential for the origin that ``ANHTTP/Request/url`` has when it is set; nil, the default, means one of the
    /// session's. It does not go along to another origin.
    public var credential: Credential? {
        get { scopedCredential.flatMap { $0.origin == Origin(url) ? $0.credential : nil } }
        set {
            scopedCredential = newValue.map { ScopedCredential(origin: Origin(url), credential: $0) }
        }
    }

    /// How this request shows who makes it; nil, the default, means as the session says.
    public var authentication: AuthenticationPolicy? {
        get { self[PolicyOfRequest.self] }
        set { self[PolicyOfRequest.self] = newValue }
    }

    /// Whether this request has something of its own to show.
    var hasOwnAuthentication: Bool { scopedCredential != nil || authentication != nil }

    private var scopedCredential: ScopedCredential? {
        get { self[ScopedCredential.self] }
        set { self[ScopedCredential.self] = newValue }
    }
}

/// A credential and where it may go.
private struct ScopedCredential: RequestAttribute {
    var origin: Origin
    var credential: Credential

    static var defaultValue: ScopedCredential? { nil }
}

private enum PolicyOfRequest: RequestAttribute {
    static var defaultValue: AuthenticationPolicy? { nil }
}
