// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// An HTTP request: what to send, and options that override those of the session.
///
/// Header fields are sent in order, repeated names as separate fields, and empty values unchanged; for `Cookie`, see
/// ``TransferOptions/handlesCookies``. `HTTPField` silently replaces control characters in values with spaces, and
/// removes spaces at both ends; use `HTTPFields(validating:)` for untrusted names and values, which throws an error
/// instead.
public struct Request: Sendable {
    /// The method, which may be any token; `GET` by default. See RFC 9110 §9.
    public var method: HTTPRequest.Method
    /// The absolute `http` or `https` URL; for a WebSocket connection of a session, also `ws` or `wss`. Any other fails
    /// with ``TransportError/Reason/unsupportedScheme(_:)`` or ``TransportError/Reason/invalidURL(_:)`` when the
    /// request is sent.
    ///
    /// A fragment is not sent. User information is sent as Basic credentials, unless the request is authenticated in
    /// another way, such as by an `Authorization` field.
    public var url: URL
    /// The header fields, in the order in which they are sent; empty by default. A session appends those of its default
    /// fields whose names are missing.
    ///
    /// `Content-Length` and `Transfer-Encoding` are derived from the body; a field that contradicts it fails the
    /// request with ``TransportError/Reason/invalidRequest(_:)``. For `Cookie`, see ``TransferOptions/handlesCookies``,
    /// and for `Accept-Encoding`, ``TransferOptions/decodesContent``.
    public var headers: HTTPFields
    /// The body, which any method may have; ``RequestBody/none`` by default.
    public var body: RequestBody
    /// A closure that returns the trailer fields; `nil`, the default, for none. See RFC 9110 §6.5.
    ///
    /// It is called in a child task of the request, each time that all bytes of the body have been read from their
    /// source. The fields are sent over HTTP/1.1 only, where the body then has chunked coding even if its length is
    /// known. If the closure throws an error, or returns a field that frames, routes or
    /// authenticates a message or describes its content, such as `Content-Length` or `Host`, the request fails with
    /// ``TransportError/RequestBodyFailure/source(_:)``.
    public var trailers: (@Sendable () throws -> HTTPFields)?

    @usableFromInline package var attributes = RequestAttributes()
    /// The attributes that a session has set for one call; see ``CallAttribute``.
    package var callAttributes = RequestAttributes()
    /// The request's own options; `nil` to use the session's.
    package private(set) var sharedOptions: SharedTransferOptions?

    /// Creates a request, by default a `GET` without fields and body.
    ///
    /// - Parameters:
    ///   - method: The method; `GET` by default.
    ///   - url: The absolute `http` or `https` URL, or `ws` or `wss` for a WebSocket connection of a session. Any other
    ///     fails with ``TransportError/Reason/unsupportedScheme(_:)`` or ``TransportError/Reason/invalidURL(_:)`` when
    ///     the request is sent.
    ///   - headers: The header fields; empty by default.
    ///   - body: The body; ``RequestBody/none`` by default.
    public init(
        method: HTTPRequest.Method = .get, url: URL, headers: HTTPFields = [:], body: RequestBody = .none
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// Creates a request with options of its own; `nil` to inherit the session's.
    package init(
        method: HTTPRequest.Method = .get, url: URL, headers: HTTPFields = [:], body: RequestBody = .none,
        options: TransferOptions?
    ) {
        self.init(method: method, url: url, headers: headers, body: body)
        self.options = options
    }

    /// The options with which the request is sent; `nil` until a session sets them, from its own options and the
    /// changes of the request: when it makes a request with `options:`, whose options then are complete for any session,
    /// and otherwise after its `SessionConfiguration.interceptors`. A transport sends a request without options with those
    /// that the transport was created with. See ``changeOptions(_:)``.
    public package(set) var options: TransferOptions? {
        get { sharedOptions?.value }
        set { sharedOptions = newValue.map(SharedTransferOptions.init) }
    }

    /// Changes some of the transfer options for this request; all others are those of the session.
    ///
    /// ```swift
    /// request.changeOptions { $0.timeouts.idle = .seconds(5) }
    /// ```
    ///
    /// A transport that the request is passed to directly, without a session, ignores the changes.
    ///
    /// - Parameter change: Changes a copy of the session's options. It is called when the request is sent, possibly
    ///   more than once, after earlier changes; for a request that already has its ``options``, as in one of the
    ///   `SessionConfiguration.attemptInterceptors`, it is called at once.
    public mutating func changeOptions(_ change: @escaping @Sendable (inout TransferOptions) -> Void) {
        if let options {
            self.options = options.with(change)
        } else {
            self[OptionsChanges.self].append(OptionsChange(apply: change))
        }
    }

    /// The value of an attribute of this request; ``RequestAttribute/defaultValue`` if it was not set.
    @inlinable public subscript<Attribute: RequestAttribute>(_ attribute: Attribute.Type) -> Attribute.Value {
        get { attributes[attribute] }
        set { attributes[attribute] = newValue }
    }

    /// The value of an attribute of the call that sends this request.
    package subscript<Attribute: CallAttribute>(_ attribute: Attribute.Type) -> Attribute.Value {
        get { callAttributes[attribute] }
        set { callAttributes[attribute] = newValue }
    }

    /// The value of an attribute of this request's role in its call.
    package subscript<Attribute: RoleAttribute>(_ attribute: Attribute.Type) -> Attribute.Value {
        get { self[Role.self][attribute] }
        set { self[Role.self][attribute] = newValue }
    }

    /// Changes options that this request inherits if it has none.
    @inline(never)
    package mutating func changeOptions(
        inheritingFrom inherited: SharedTransferOptions, by change: (inout TransferOptions) -> Void
    ) {
        inheritOptions(inherited)
        options = options?.with(change)
    }

    /// Inherits options if this request has none, and applies the request's changes. The options are shared, and copied
    /// only if they are changed.
    ///
    /// Not inlined, because options are large and would otherwise take space in the caller's asynchronous frame.
    @inline(never)
    package mutating func inheritOptions(_ inherited: SharedTransferOptions) {
        if sharedOptions == nil { sharedOptions = options(inheriting: inherited) }
    }

    /// Inherits the options of the request that this one replaces, or what that one changes in the session's, after which
    /// this request's changes are applied. Changes that both have are applied once.
    @inline(never)
    package mutating func inheritOptions(of other: Request) {
        if let options = other.sharedOptions { return inheritOptions(options) }
        let inherited = other[OptionsChanges.self]
        guard sharedOptions == nil, !inherited.isEmpty else { return }
        let own = self[OptionsChanges.self].filter { change in !inherited.contains { $0 === change } }
        self[OptionsChanges.self] = inherited + own
    }

    /// Returns the options of this request, with inherited ones if it has none.
    @inline(never)
    package func options(inheriting inherited: SharedTransferOptions) -> SharedTransferOptions {
        if let sharedOptions { return sharedOptions }
        let changes = self[OptionsChanges.self]
        guard !changes.isEmpty else { return inherited }
        var changed = inherited.value
        for change in changes { change.apply(&changed) }
        return SharedTransferOptions(changed)
    }
}

/// The key of the changes that a request makes to the session's options.
package enum OptionsChanges: RequestAttribute {
    /// No changes.
    package static var defaultValue: [OptionsChange] { [] }
}

/// A change of a session's options, which copies of a request have in common.
package final class OptionsChange: Sendable {
    fileprivate let apply: @Sendable (inout TransferOptions) -> Void

    fileprivate init(apply: @escaping @Sendable (inout TransferOptions) -> Void) {
        self.apply = apply
    }
}

/// Transfer options behind a reference. The requests of a session share them, and a transport can tell by identity that
/// they are the same as for the previous request.
package final class SharedTransferOptions: Sendable {
    package let value: TransferOptions
    /// Whether the TLS options require more than a valid chain and the right host name.
    package let hasSecurity: Bool

    package init(_ value: TransferOptions) {
        self.value = value
        hasSecurity = value.tls.hasSecurity
    }
}

extension Request: CustomStringConvertible {
    /// The method and the URL, without user information, query values and fragment; only its scheme if it has no host.
    public var description: String {
        "\(method.rawValue) \(url.redactedDescription)"
    }
}

/// A key for a value that layers above the transport attach to a request, such as a policy or a tag for an interceptor.
///
/// The conforming type itself is the key:
///
/// ```swift
/// enum Purpose: RequestAttribute {
///     static let defaultValue = "browsing"
/// }
///
/// request[Purpose.self] = "prefetching"
/// ```
///
/// Attributes are not sent to the server. Retries and redirects keep them, and interceptors can read and change them.
public protocol RequestAttribute {
    /// The type of the attribute's value, which the compiler infers from ``RequestAttribute/defaultValue``.
    associatedtype Value: Sendable
    /// The value for requests that have not set the attribute.
    static var defaultValue: Value { get }
}

/// A key for a value that a session attaches to a request for one call, such as a credential. Another call with the same
/// request, which an interceptor or a monitor may make in another session and to another URL, begins without it.
package protocol CallAttribute: RequestAttribute {}

/// A key for a value that a session attaches to one request of a call because of what that one is for, such as the opening
/// of a WebSocket connection. Retries and redirects keep it. Another request of an interceptor has it only if it is the same
/// one; see ``Request/keepsRole(of:)``.
package protocol RoleAttribute: RequestAttribute {}

private enum Role: CallAttribute {
    static var defaultValue: RequestAttributes { RequestAttributes() }
}

extension Request {
    /// Whether this request, which an interceptor sends in place of another one, is that one, perhaps modified, and not one
    /// for a purpose of its own.
    ///
    /// | the request | is that one |
    /// |---|---|
    /// | created anew | if path, method and the presence of a body are the same |
    /// | a copy | unless the path and one of the others differ |
    ///
    /// The host may be that of a mirror, and the query may have a ticket.
    package func keepsRole(of other: Request) -> Bool {
        guard !other[Role.self].isEmpty else { return true }
        let isSamePath = url.pathOrRoot == other.url.pathOrRoot
        let isSameKind = method == other.method && body.isNone == other.body.isNone
        return self[Role.self].isEmpty ? isSamePath && isSameKind : isSamePath || isSameKind
    }

    /// Adds the attributes of the call from a request in whose place this one is sent.
    package mutating func fillCallAttributes(from other: Request, keepingRole keepsRole: Bool) {
        callAttributes.fill(from: other.callAttributes)
        if !keepsRole { self[Role.self] = RequestAttributes() }
    }
}

extension URL {
    fileprivate var pathOrRoot: String {
        let path = path(percentEncoded: true)
        return path.isEmpty ? "/" : path
    }
}

extension RequestBody {
    fileprivate var isNone: Bool { if case .none = content { true } else { false } }
}

/// The attributes of a request. An empty collection allocates no memory, and reading from it is a single comparison.
@usableFromInline
package struct RequestAttributes: Sendable {
    @usableFromInline var values: [ObjectIdentifier: any Sendable] = [:]

    /// Creates an empty collection.
    package init() {}

    var isEmpty: Bool { values.isEmpty }

    @inlinable package subscript<Attribute: RequestAttribute>(attribute: Attribute.Type) -> Attribute.Value {
        get { values.isEmpty ? Attribute.defaultValue : value(of: attribute) }
        set { values[ObjectIdentifier(Attribute.self)] = newValue }
    }

    // Out of line, so that a request without attributes needs no metadata of an optional value; inlinable, so that other
    // modules have it for their attributes' types.
    @inlinable @inline(never)
    func value<Attribute: RequestAttribute>(of: Attribute.Type) -> Attribute.Value {
        guard let value = values[ObjectIdentifier(Attribute.self)] else { return Attribute.defaultValue }
        return value as? Attribute.Value ?? Attribute.defaultValue
    }
}

extension RequestAttributes {
    /// Adds the attributes of others that were not set.
    package mutating func fill(from others: RequestAttributes) {
        values.merge(others.values) { own, _ in own }
    }

    /// Returns whether attributes other than the given one were set.
    package func hasAttributes(besides attribute: any RequestAttribute.Type) -> Bool {
        values.keys.contains { $0 != ObjectIdentifier(attribute) }
    }
}

extension Request {
    /// The clock of the session that sends the request, for a transport that keeps time by it; `nil` if that is the
    /// system's.
    package var sessionClock: (any Clock<Duration>)? {
        get { self[SessionClock.self] }
        set { self[SessionClock.self] = newValue }
    }
}

private enum SessionClock: CallAttribute {
    static var defaultValue: (any Clock<Duration>)? { nil }
}

extension Request {
    /// Whether the request is not needed any more, because another one of its call was answered first.
    package var isSuperseded: Bool { self[Supersession.self]() }
}

/// Returns whether a request is superseded; see ``Request/isSuperseded``.
package enum Supersession: CallAttribute {
    package static var defaultValue: @Sendable () -> Bool { { false } }
}

extension Request {
    /// Whether the exchange may go on for long, such as a feed of JSON lines or a long poll, so that its connection is
    /// not one of those that ordinary requests share; see ``ConnectionLimits/maximumLongLivedPerHost``.
    ///
    /// If it is `nil`, the default, this holds for a request whose `Accept` field is `text/event-stream`, and for an
    /// event source of a session. It always holds for a WebSocket connection.
    public var isLongLived: Bool? {
        get { self[LongLife.self] }
        set { self[LongLife.self] = newValue }
    }

    /// Whether the exchange counts as long-lived; see ``isLongLived``.
    package var mayGoOnForLong: Bool {
        if let isLongLived { return isLongLived }
        guard let type = headers.first(.accept), type.utf8.count == Self.eventStream.utf8.count else { return false }
        return type.lowercased() == Self.eventStream && headers[values: .accept].count == 1
    }

    private static let eventStream = "text/event-stream"
}

private enum LongLife: RequestAttribute {
    static var defaultValue: Bool? { nil }
}

extension Request {
    /// Whether the reader of a streamed response ends the exchange with the response, whose end therefore waits for the rest
    /// of the request's body, as that of a collected response does.
    package var endsWithResponse: Bool {
        get { self[EndWithResponse.self] }
        set { self[EndWithResponse.self] = newValue }
    }

    private enum EndWithResponse: CallAttribute {
        static var defaultValue: Bool { false }
    }
}

// What each transport checks before it sends a request.

extension Request {
    /// Checks that the URL is one of HTTP, with a host.
    package func validate() throws(TransportError) {
        guard url.isPlainHTTP || url.isHTTPS else {
            throw TransportError(.unsupportedScheme(url.scheme ?? ""))
        }
        guard let host = url.host(), !host.isEmpty else {
            throw TransportError(.invalidURL(url.redactedDescription))
        }
        try headers.checkCount()
    }
}

extension HTTPFields {
    /// Returns the trailers of a request, none of which may frame or route the message, authenticate it or describe its
    /// content (RFC 9110 §6.5.1).
    package func checkedAsTrailers() throws(TransportError) -> HTTPFields {
        if let field = first(where: { Self.forbiddenTrailers.contains($0.name.canonicalName) }) {
            throw TransportError(.invalidRequest(.option("\(field.name) cannot be sent as a trailer.")))
        }
        return self
    }

    private static let forbiddenTrailers: Set<String> = [
        "authorization", "cache-control", "connection", "content-encoding", "content-length", "content-range",
        "content-type", "cookie", "expect", "host", "keep-alive", "max-forwards", "proxy-authorization",
        "proxy-connection", "range", "te", "trailer", "transfer-encoding", "upgrade",
    ]
}

extension HTTPField {
    /// Returns whether the field is sent; fields that frame the body are generated from the body instead.
    ///
    /// - Parameter length: The length of the body in bytes; `nil` if it is unknown.
    /// - Throws: ``TransportError/Reason/invalidRequest(_:)`` for a field that does not fit the body.
    package func isSent(withBodyOf length: Int64?) throws(TransportError) -> Bool {
        switch name {
        case .contentLength:
            guard let length, value == Swift.String(length) else {
                throw TransportError(.invalidRequest(.option("Content-Length differs from the length of the body.")))
            }
            return false
        case .transferEncoding:
            guard length == nil, value.lowercased() == "chunked" else {
                throw TransportError(.invalidRequest(.option("Transfer-Encoding does not fit the body.")))
            }
            return false
        default:
            return true
        }
    }
}
