// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
public import HTTPTypes

/// What happens when a server redirects, RFC 9110 §15.4.
///
/// | status | POST | GET, HEAD | other methods |
/// |---|---|---|---|
/// | 301, 302 | becomes GET without its body | stay | stay, with their body |
/// | 303 | becomes GET without its body | stay | become GET without their body |
/// | 307, 308 | stays, with its body | stay | stay, with their body |
///
/// When the origin changes (scheme, host or port), the fields named in ``sensitiveHeaders`` and a `Host` of the request's
/// own are left behind. A redirect from https to http is refused. A body that can be read only once is never sent again:
/// where it would have to be, the request fails. A fragment of the URL is kept where the new one has none.
public struct RedirectPolicy: Sendable {
    /// Whether redirects are followed at all; otherwise they are responses like others.
    public var isEnabled = true
    /// How many are followed for one request; 20 by default.
    public var maximum = 20
    /// Fields that are not sent to another origin: credentials and cookies, and what a program adds.
    public var sensitiveHeaders: Set<HTTPField.Name> = [.authorization, .proxyAuthorization, .cookie]
    /// Asked for each redirect that is not refused: returns the request to follow with, changed or not, or nil to take the
    /// redirect as the response. What it returns is sent as it is. Nil, the default, follows all.
    public var decision: (@Sendable (Redirection) async throws -> Request?)?

    /// Creates the default policy.
    public init() {}

    /// A redirect about to be followed.
    public struct Redirection: Sendable {
        /// The response that redirects.
        public var head: ResponseHead
        /// The request that was answered by it.
        public var original: Request
        /// The request that would follow.
        public var proposed: Request
    }

    /// The policy that follows no redirect: each is a response like others.
    public static let none = RedirectPolicy().with { $0.isEnabled = false }

    /// Returns a copy that `change` has changed.
    public func with(_ change: (inout RedirectPolicy) -> Void) -> RedirectPolicy {
        var copy = self
        change(&copy)
        return copy
    }

    /// The request that follows a response; nil where the response redirects nowhere.
    func proposal(after head: ResponseHead, to request: Request) throws(SessionError) -> Request? {
        guard isEnabled, [301, 302, 303, 307, 308].contains(head.status.code),
            let location = head.headers.first(.location)
        else { return nil }
        var next = request
        next.url = try target(location, from: request.url)
        if Self.becomesGet(request.method, status: head.status.code) {
            next.method = .get
            next.body = .none
            next.trailers = nil
            next.headers.removeAll { Self.contentFields.contains($0.name) }
        }
        if Origin(next.url) != Origin(request.url) {
            next.headers.removeAll { sensitiveHeaders.contains($0.name) || $0.name.canonicalName == "host" }
        }
        return next
    }

    private func target(_ location: String, from url: URL) throws(SessionError) -> URL {
        guard var target = URL(string: location, relativeTo: url)?.absoluteURL,
            let scheme = target.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = target.host(), !host.isEmpty
        else { throw .redirect(.location(location)) }
        if url.scheme?.lowercased() == "https", scheme == "http" {
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

    /// Fields that describe a body that is not sent any more, RFC 9110 §15.4.
    private static let contentFields: Set<HTTPField.Name> = [
        .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .transferEncoding, .expect,
    ]
}

extension Request {
    /// What happens to redirects of this request; nil, the default, means as the session says. Start from the session's
    /// policy and change what differs:
    ///
    /// ```swift
    /// request.redirects = manager.configuration.redirects.with { $0.maximum = 1 }
    /// ```
    public var redirects: RedirectPolicy? {
        get { self[RedirectPolicy.OfRequest.self] }
        set { self[RedirectPolicy.OfRequest.self] = newValue }
    }
}

extension RedirectPolicy {
    fileprivate enum OfRequest: RequestAttribute {
        static var defaultValue: RedirectPolicy? { nil }
    }
}
