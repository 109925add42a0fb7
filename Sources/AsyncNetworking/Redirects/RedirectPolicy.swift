// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
public import HTTPTypes

/// Whether and how redirects are followed (RFC 9110 §15.4). A policy takes effect as
/// ``SessionConfiguration/redirectPolicy`` or, for one request, as `Request.redirectPolicy`.
///
/// | status | POST | GET, HEAD | other methods |
/// |---|---|---|---|
/// | 301, 302 | becomes GET without a body | unchanged | unchanged, with the body |
/// | 303 | becomes GET without a body | unchanged | becomes GET without a body |
/// | 307, 308 | unchanged, with the body | unchanged | unchanged, with the body |
///
/// A request that becomes GET loses its trailers and the fields that describe the body: `Content-Type` and all others
/// that begin with `Content-`, `Digest`, `Repr-Digest`, `Last-Modified`, `Trailer`, `Transfer-Encoding` and `Expect`.
/// Other statuses, and responses without a `Location` or with an empty one, are not redirects but responses. A `Location`
/// is resolved against the URL of the request; existing escapes are kept, and characters that are invalid in URLs are
/// percent-encoded. One that does not lead to an http or https URL with a host, such as `app://callback`, fails with
/// ``SessionError/RedirectFailure/location(_:)``; to receive such a redirect as the response, use ``none``. For a
/// WebSocket connection it may also be a ws or wss URL.
///
/// If the origin (scheme, host or port) changes, the fields in ``sensitiveHeaders`` and an explicit `Host` field are
/// removed, but not `Proxy-Authorization` while the proxy stays the same. A redirect from https to http fails with
/// ``SessionError/RedirectFailure/downgrade(to:)``, unless the new host is known to require https (RFC 6797), so that
/// `https` replaces `http`. One that would require a body that is not replayable to be sent again fails with
/// ``SessionError/RedirectFailure/bodyNotReplayable``. If the new URL has no fragment, the old URL's fragment is kept
/// (RFC 9110 §10.2.2).
public struct RedirectPolicy: Sendable {
    /// Whether redirects are followed; `true` by default. Otherwise a redirect is returned as the response, and
    /// ``decision`` is not called.
    public var isEnabled = true
    /// The maximum number of redirects followed for one request; 20 by default. The next one fails with
    /// ``SessionError/RedirectFailure/tooMany(limit:to:)``, unless ``decision`` returns it as the response; with 0 or
    /// less, the first one does.
    public var maximum = 20
    /// The header fields that are removed when the origin changes: `Authorization`, `Proxy-Authorization` and `Cookie`
    /// by default. Resume data and records of durable downloads do not contain them either. With a response cache,
    /// those of the session's policy, and `Authorization` and `Cookie` in any case, count as credentials: a stored
    /// response is used only for requests with the same ones.
    ///
    /// `Proxy-Authorization` is for the proxy, and never sent to a server (RFC 9110 §11.7.2). It is therefore removed
    /// only if the new origin may have another proxy: if ``ANHTTP/ProxyPolicy/environment`` is used, and the scheme
    /// changes.
    public var sensitiveHeaders: Set<HTTPField.Name> = [.authorization, .proxyAuthorization, .cookie]
    /// A closure that decides about each redirect with a valid `Location` that is no downgrade, including the one
    /// beyond ``maximum``; `nil`, the default, follows all up to the maximum.
    ///
    /// It returns the request to send, or `nil` to return the redirect as the response. The request may differ from the
    /// proposed one: its header fields and its scheme are not checked again, but `http` is replaced by `https` for
    /// hosts that require it, and its body must be replayable. The closure runs in the task that makes the request, and
    /// an error that it throws becomes the error of the request. Meanwhile the body of the redirect is received and kept
    /// in memory, up to ``ANHTTP/TransferOptions/maximumBodySize``, so that the closure may make requests.
    public var decision: (@Sendable (Redirection) async throws -> Request?)?

    /// Creates the default policy, which follows at most 20 redirects, and removes `Authorization`,
    /// `Proxy-Authorization` and `Cookie` when the origin changes, as described at ``sensitiveHeaders``.
    public init() {}

    /// A redirect, and the request that would follow it; the argument of ``RedirectPolicy/decision``.
    public struct Redirection: Sendable {
        /// The head of the response that redirects, with its status and the `Location` field.
        public var head: ResponseHead
        /// The request that was answered by the redirect. If there were several, it is the one that followed the
        /// previous redirect.
        ///
        /// It has the fields of ``SessionConfiguration/headers``, which may include `Authorization`, and `https` for
        /// hosts that require it. It lacks stored cookies and what the ``AuthenticationPolicy`` adds: credentials,
        /// tokens and signatures.
        public var original: Request
        /// The request that the policy would send next: with the URL of `Location`, the method and body for the status,
        /// and without the ``RedirectPolicy/sensitiveHeaders`` and an explicit `Host` field if the origin changes.
        public var proposed: Request
    }

    /// The policy that returns every redirect as the response. Set as `Request.redirectPolicy`, it disables the
    /// session's policy; write `RedirectPolicy.none` there, because `.none` means `nil` for an optional property.
    public static let none = RedirectPolicy().with { $0.isEnabled = false }

    /// Returns a copy of the policy modified by a closure.
    ///
    /// - Parameter change: Modifies the copy.
    public func with(_ change: (inout RedirectPolicy) -> Void) -> RedirectPolicy {
        var copy = self
        change(&copy)
        return copy
    }

    /// Returns the request to send after a response, or `nil` if the response is not a redirect with a `Location`. An empty
    /// one would be the URL of the request itself.
    ///
    /// - Parameter strictURL: Returns the URL that a request is sent to if it has the given one.
    @inline(never)
    func proposal(
        after head: ResponseHead, to request: Request, strictURL: (URL, Request) -> URL = { url, _ in url }
    ) throws(SessionError) -> Request? {
        guard isEnabled, [301, 302, 303, 307, 308].contains(head.status.code),
            let location = head.headers.first(where: { $0.name == .location && !$0.value.isEmpty })?.reference
        else { return nil }
        var next = request
        next.url = try target(
            location, from: request.url, isUpgrade: request.webSocketOptions != nil
        ) { strictURL($0, request) }
        if Self.becomesGet(request.method, status: head.status.code) {
            next.method = .get
            next.body = .none
            next.trailers = nil
            next.headers.removeAll { Self.describesContent($0.name.canonicalName) }
        }
        let proxy = request.options?.proxy ?? .environment
        let (home, other) = (Home(Origin(request.url), over: proxy), Home(Origin(next.url), over: proxy))
        if home.origin != other.origin { next.removeFields(sensitiveFields(leaving: home, for: other)) }
        return next
    }

    /// Returns the names of the fields that are not sent to another origin.
    func sensitiveFields(leaving home: Home, for other: Home) -> Set<HTTPField.Name> {
        home.proxy == other.proxy ? sensitiveHeaders.subtracting([.proxyAuthorization]) : sensitiveHeaders
    }

    private func target(
        _ location: String, from url: URL, isUpgrade: Bool, strictURL: (URL) -> URL
    ) throws(SessionError) -> URL {
        let named = URL(reference: location, relativeTo: url)
        guard var target = isUpgrade ? named?.withoutWebSocketScheme : named,
            let scheme = target.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = target.host(), !host.isEmpty
        else { throw .redirect(.location(location)) }
        target = strictURL(target)
        if url.isHTTPS, target.isPlainHTTP {
            throw .redirect(.downgrade(to: target.redactedDescription))
        }
        if target.fragment() == nil, let fragment = url.fragment(percentEncoded: true),
            var components = URLComponents(url: target, resolvingAgainstBaseURL: true)
        {
            components.percentEncodedFragment = fragment
            target = components.url ?? target
        }
        return target
    }

    private static func becomesGet(_ method: HTTPRequest.Method, status: Int) -> Bool {
        switch status {
        case 303: method != .get && method != .head
        case 301, 302: method == .post
        default: false
        }
    }

    /// Whether a field, named in lower case, describes a body, with which it is removed (RFC 9110 §15.4).
    static func describesContent(_ name: String) -> Bool {
        switch name {
        case "digest", "expect", "last-modified", "repr-digest", "trailer", "transfer-encoding": true
        default: name.hasPrefix("content-")
        }
    }
}

extension Request {
    /// The redirect policy of this request; `nil`, the default, uses the session's, and any other replaces that as a
    /// whole. To change one setting, start from the session's policy:
    ///
    /// ```swift
    /// request.redirectPolicy = manager.configuration.redirectPolicy.with { $0.maximum = 1 }
    /// ```
    public var redirectPolicy: RedirectPolicy? {
        get { self[RedirectPolicy.OfRequest.self] }
        set { self[RedirectPolicy.OfRequest.self] = newValue }
    }
}

extension Request {
    /// Removes the fields with these names and an explicit `Host` field, because the request's origin is another one now.
    fileprivate mutating func removeFields(_ names: Set<HTTPField.Name>) {
        headers.removeAll { names.contains($0.name) || $0.name.canonicalName == "host" }
    }
}

extension RedirectPolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: RedirectPolicy? { nil }
    }
}

extension Pipeline {
    /// Returns the request at another URL. At another origin, it has neither an explicit `Host` nor sensitive fields, of
    /// which the session adds none either.
    @inline(never)
    func request(_ request: Request, at url: URL) -> Request {
        var next = request
        next.url = url
        let (home, other) = (home(of: request), home(of: next))
        guard home.origin != other.origin else { return next }
        let policy = request.redirectPolicy ?? redirectPolicy
        next.removeFields(policy.sensitiveFields(leaving: home, for: other))
        if next[Home.self] == nil { next[Home.self] = home }
        return next
    }

    /// Follows redirects until a response is not a redirect, or the policy returns a redirect as the response.
    @inline(never)
    func followRedirects(_ request: Request, _ call: inout Call, _ next: Next) async throws -> OpenResponse {
        var target = request
        var history: [ResponseHead] = []
        while true {
            // A field that the policy has set is the program's own.
            call.credentialOrigin = nil
            var response = try await next(target, &call)
            guard try await follow(&response, of: request, to: &target, &call, after: history.count) else {
                if !history.isEmpty { response.head.redirectHistory = history }
                return response
            }
            history.append(response.head)
        }
    }

    /// Replaces a request by the one that a redirect asks for, and closes the exchange. Returns whether the response is a
    /// redirect, and followed.
    ///
    /// - Parameter original: The request that was not redirected yet. Its policy decides about all redirects.
    @inline(never)
    private func follow(
        _ response: inout OpenResponse, of original: Request, to request: inout Request, _ call: inout Call,
        after count: Int
    ) async throws -> Bool {
        let policy = original.redirectPolicy ?? redirectPolicy
        guard let target = try await target(of: &response, to: request, by: policy, &call) else { return false }
        guard count < policy.maximum else {
            throw SessionError.redirect(.tooMany(limit: policy.maximum, to: target.url.redactedDescription))
        }
        await call.exchanges.close()
        report(.redirected(by: response.head, to: target), of: &call)
        request = target
        return true
    }

    /// Returns the request that a redirect asks for; `nil` if the response is not a redirect, or not followed.
    private func target(
        of response: inout OpenResponse, to request: Request, by policy: RedirectPolicy, _ call: inout Call
    ) async throws -> Request? {
        let head = response.head
        guard let proposed = try policy.proposal(after: head, to: request, strictURL: strictURL) else { return nil }
        var target = proposed
        if let decision = policy.decision {
            let ahead = readAhead(&response, to: request, &call)
            let decided = try await decision(.init(head: head, original: request, proposed: proposed))
            await ahead?.stop()
            try checkCancellation()
            guard let decided else { return nil }
            target = decided.continuing(request)
            // A field that it has put back is its own.
            removeProxyCredential(from: &target, replacing: proposed)
            call.measureTimeout(of: &target, on: clock)
            call.noteTimeout(of: target)
        }
        requireTLS(of: &target)
        guard target.body.isReplayable else { throw SessionError.redirect(.bodyNotReplayable) }
        return target
    }
}

/// The origin of a URL: scheme, host and port (RFC 6454 §4). The host is normalized; a missing port is the scheme's
/// default. The schemes `ws` and `wss` count as `http` and `https`, with which their connections begin.
struct Origin: Hashable, Sendable, CustomStringConvertible {
    let scheme: String
    let host: String
    let port: Int

    init(_ url: URL) {
        scheme =
            switch url.scheme?.lowercased() ?? "" {
            case "ws": "http"
            case "wss": "https"
            case let scheme: scheme
            }
        host = HostName(url).zonedText
        port = url.port ?? (scheme == "https" ? 443 : 80)
    }

    private init(overPlainHTTP host: String, port: Int) { (scheme, self.host, self.port) = ("http", host, port) }

    /// The origins over http whose requests are sent to this one if its host requires https (RFC 6797 §8.3).
    var overPlainHTTP: [Origin] {
        let ports = scheme == "https" && port != 80 ? port == 443 ? [80, 443] : [port] : []
        return ports.map { Origin(overPlainHTTP: host, port: $0) }
    }

    var description: String { "\(scheme)://\(host):\(port)" }
}
