// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials
import HTTPTypes

/// The credentials that servers and proxies accepted, sent with later requests without waiting for a challenge.
///
/// Answers to servers are stored by protection space: origin, scheme and realm (RFC 9110 §11.5).
struct CredentialCache: Sendable {
    /// The protection spaces of each origin, the most recent last.
    private var servers: [Server: [AcceptedSpace]] = [:]
    private var proxies: [ProxyKey: TransportAuthentication.SchemeCredential] = [:]

    /// A server: an origin, and the server to which requests to it are sent instead.
    private struct Server: Hashable {
        let origin: Origin
        let other: String

        init(_ request: Request) {
            origin = Origin(request.url)
            other = request.otherServer
        }
    }

    /// The proxy of a request, and the request's credential for it.
    struct ProxyKey: Hashable {
        let server: ProxyServer
        let credential: Credential?

        init(_ request: Request) {
            let policy = request.options?.proxy ?? .environment
            server = ProxyServer(policy, scheme: Origin(request.url).scheme)
            credential = if case .proxy(let proxy) = policy { proxy.credential } else { nil }
        }
    }

    /// The maximum number of spaces stored for one origin. Servers choose their realms, so there must be a limit.
    private static let maximumSpaces = 32
    /// The maximum number of servers, and of proxies. At the limit, an arbitrary one is forgotten, which costs a challenge.
    private static let maximumServers = 1000

    // MARK: Servers

    /// Returns the stored answer for a request: the one with its credential, or without a credential an answer of the
    /// policy.
    ///
    /// Of the spaces known to cover the request's path, the one with the longest match is used, and the most recent of
    /// equal ones.
    func answer(
        for request: Request, _ credential: Credential?
    ) -> (answer: TransportAuthentication.SchemeCredential, realm: String?)? {
        guard !servers.isEmpty, let spaces = servers[Server(request)] else { return nil }
        let target = RequestTarget(request)
        var best: (depth: Int, space: AcceptedSpace)?
        for space in spaces {
            guard credential == nil ? !space.isOfRequest : space.answer.credential == credential else { continue }
            if let depth = space.depth(of: target), depth >= best?.depth ?? 0 { best = (depth, space) }
        }
        return best.map { ($0.space.answer, $0.space.realm) }
    }

    /// Stores an answer that was accepted after a challenge.
    ///
    /// - Parameter domain: The `domain` parameter of a Digest challenge.
    mutating func store(
        _ answer: TransportAuthentication.SchemeCredential, in space: ProtectionSpace, domain: String?,
        for request: Request
    ) {
        let server = Server(request)
        let target = RequestTarget(request)
        let declared = DeclaredDomain(domain, relativeTo: request.url, server.origin)
        var spaces = servers[server] ?? []
        let isOfRequest = request.credential == answer.credential
        let index = spaces.firstIndex {
            $0.realm == space.realm && $0.answer.scheme == answer.scheme && $0.isOfRequest == isOfRequest
        }
        var accepted =
            index.map { spaces.remove(at: $0) }
            ?? AcceptedSpace(answer: answer, realm: space.realm, isOfRequest: isOfRequest)
        for index in spaces.indices where spaces[index].isOfRequest == isOfRequest {
            spaces[index].remove(target)
        }
        accepted.answer = answer
        accepted.add(target, declared)
        if spaces.count >= Self.maximumSpaces { spaces.removeFirst() }
        servers.makeRoom(for: server, limit: Self.maximumServers)
        servers[server] = spaces + [accepted]
    }

    /// Removes a stored answer that a server refused with challenges for these spaces: either the server no longer
    /// accepts it, or the request's path belongs to another space.
    mutating func remove(
        _ answer: TransportAuthentication.SchemeCredential, for request: Request, _ offered: [ProtectionSpace]
    ) {
        let server = Server(request)
        let target = RequestTarget(request)
        servers[server]?.removeAll { space in
            space.answer == answer && offered.contains { $0.scheme == answer.scheme && $0.realm == space.realm }
        }
        for index in servers[server]?.indices ?? 0..<0 where servers[server]?[index].answer == answer {
            servers[server]?[index].remove(target)
        }
    }

    // MARK: Proxies

    /// Returns the answer that the proxy of a request accepted.
    func proxyAnswer(for request: Request) -> TransportAuthentication.SchemeCredential? {
        proxies.isEmpty ? nil : proxies[ProxyKey(request)]
    }

    /// Stores an answer that the proxy of a request accepted.
    mutating func storeProxyAnswer(_ answer: TransportAuthentication.SchemeCredential, for request: Request) {
        let key = ProxyKey(request)
        proxies.makeRoom(for: key, limit: Self.maximumServers)
        proxies[key] = answer
    }

    /// Removes an answer that the proxy of a request no longer accepts, unless a newer one is stored.
    mutating func removeProxyAnswer(_ answer: TransportAuthentication.SchemeCredential, for request: Request) {
        let key = ProxyKey(request)
        if proxies[key] == answer { proxies[key] = nil }
    }
}

extension Dictionary {
    /// Removes an arbitrary element if there is no room for another key.
    fileprivate mutating func makeRoom(for key: Key, limit: Int) {
        if count >= limit, self[key] == nil, let first = keys.first { self[first] = nil }
    }
}

/// A protection space in which an answer was accepted, and the known extent of that space.
///
/// | known extent | Basic | Digest, NTLM, Negotiate |
/// |---|---|---|
/// | the method and path that were challenged | yes | yes |
/// | the URIs in `domain` of a Digest challenge, and all paths below (RFC 7616 §3.3) | – | yes |
/// | the directory of a challenged path, and all paths below (RFC 7617 §2.2) | yes | without `domain`, GET and HEAD without a body |
///
/// The schemes other than Basic send their first message without a body. A server that does not protect the path would
/// take that message for the request; for a GET or HEAD without a body it is the request.
private struct AcceptedSpace: Sendable {
    var answer: TransportAuthentication.SchemeCredential
    let realm: String?
    /// Whether the credential is that of a request, which only requests with the same one may send.
    let isOfRequest: Bool
    private var targets: [RequestTarget] = []
    private var directories: [String] = []
    private var declared: DeclaredDomain?

    /// The maximum number of targets and of directories stored; the oldest are removed first.
    private static let maximumCount = 256

    init(answer: TransportAuthentication.SchemeCredential, realm: String?, isOfRequest: Bool) {
        self.answer = answer
        self.realm = realm
        self.isOfRequest = isOfRequest
    }

    /// Returns the number of bytes of the request's path that the space is known to cover, `Int.max` for an exact
    /// match, or `nil` if the path is not covered.
    func depth(of target: RequestTarget) -> Int? {
        if targets.contains(target) { return .max }
        guard target.isUsual else { return nil }
        let isSafe = answer.scheme == .basic || target.isPlainRead
        let paths = (declared?.paths ?? []) + (isSafe && declared == nil ? directories : [])
        return paths.filter { target.isBelow($0) }.map(\.utf8.count).max()
    }

    mutating func add(_ target: RequestTarget, _ declared: DeclaredDomain?) {
        remove(target)
        targets = targets.suffix(Self.maximumCount - 1) + [target]
        self.declared = declared
        guard target.isUsual, !directories.contains(target.directory) else { return }
        directories = directories.suffix(Self.maximumCount - 1) + [target.directory]
    }

    mutating func remove(_ target: RequestTarget) {
        targets.removeAll { $0 == target }
    }
}

/// The part of a request that determines its protection space.
private struct RequestTarget: Equatable {
    private let path: String
    private let method: HTTPRequest.Method
    private let hasBody: Bool

    init(_ request: Request) {
        let path = request.url.path(percentEncoded: true)
        self.path = path.isEmpty ? "/" : path
        method = request.method
        hasBody = if case .none = request.body.content { false } else { true }
    }

    static func == (left: RequestTarget, right: RequestTarget) -> Bool {
        left.path == right.path && left.method == right.method
    }

    /// Whether the request may be sent without a body even if the server does not protect the path.
    var isPlainRead: Bool { (method == .get || method == .head) && !hasBody }

    /// Whether the path contains no dot segments, which could lead out of a directory.
    var isUsual: Bool { !path.hasDotSegments }

    /// The path up to and including its last slash.
    var directory: String { path.unicodeScalars.lastIndex(of: "/").map { String(path[...$0]) } ?? "/" }

    /// Whether the path equals another path or is below it.
    func isBelow(_ other: String) -> Bool {
        path.hasPrefix(other) && (other.hasSuffix("/") || path == other || path.dropFirst(other.count).first == "/")
    }
}

/// The paths of one server that the `domain` of a Digest challenge lists (RFC 7616 §3.3).
private struct DeclaredDomain {
    let paths: [String]

    /// Creates a domain; `nil` if it is missing or empty. URIs of other servers, and those after the first 64, are
    /// ignored.
    init?(_ domain: String?, relativeTo url: URL, _ origin: Origin) {
        let uris = domain?.split(at: " ") ?? []
        guard !uris.isEmpty else { return nil }
        paths = uris.prefix(64).compactMap { uri in
            guard let target = URL(reference: String(uri), relativeTo: url), Origin(target) == origin else {
                return nil
            }
            let path = target.path(percentEncoded: true)
            return path.isEmpty ? "/" : path
        }
    }
}
