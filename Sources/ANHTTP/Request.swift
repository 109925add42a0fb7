// SPDX-License-Identifier: MIT

public import FoundationEssentials
public import HTTPTypes

/// One HTTP request, as a value: what to send and, where it differs from the session, how.
///
/// Header fields are sent in the order given, repeated names stay separate fields, and an empty value is sent as such.
/// `HTTPField` itself replaces CR, LF and NUL in a value by spaces when the field is made; `HTTPFields(validating:)`
/// refuses them with an error instead, for names and values that come from outside the program.
public struct Request: Sendable {
    /// The method; any token, `GET` unless said otherwise. See RFC 9110 §9.
    public var method: HTTPRequest.Method
    /// The absolute `http` or `https` URL; a fragment is not sent.
    public var url: URL
    /// The header fields, in the order in which they are sent.
    public var headers: HTTPFields
    /// What is sent after the head; any method may have one.
    public var body: RequestBody
    /// Makes the trailer fields once the body is sent; HTTP/1.1 only, and the body is then sent chunked. See RFC 9110 §6.5.
    public var trailers: (@Sendable () throws -> HTTPFields)?

    @usableFromInline package var attributes = RequestAttributes()
    /// The options; nil where the session's hold.
    package private(set) var sharedOptions: SharedTransferOptions?

    /// Creates a request; everything but the URL has a default.
    public init(
        method: HTTPRequest.Method = .get, url: URL, headers: HTTPFields = [:], body: RequestBody = .none,
        options: TransferOptions? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        sharedOptions = options.map(SharedTransferOptions.init)
    }

    /// How the transfer is made; nil means as the session says.
    public var options: TransferOptions? {
        get { sharedOptions?.value }
        set { sharedOptions = newValue.map(SharedTransferOptions.init) }
    }

    /// Changes some of the options and leaves the others as the session says; options of the request's own are changed at
    /// once.
    ///
    /// ```swift
    /// request.changeOptions { $0.timeouts.idle = .seconds(5) }
    /// ```
    public mutating func changeOptions(_ change: @escaping @Sendable (inout TransferOptions) -> Void) {
        if let options {
            self.options = options.with(change)
        } else {
            self[OptionsChanges.self].append(change)
        }
    }

    /// An attribute of this request; see ``RequestAttribute``.
    @inlinable public subscript<Attribute: RequestAttribute>(_ attribute: Attribute.Type) -> Attribute.Value {
        get { attributes[attribute] }
        set { attributes[attribute] = newValue }
    }

    /// Takes the options of `other`, where this request has none of its own: without copying them, unless they are changed.
    ///
    /// Options are large: a caller's asynchronous frame is to have no place for them.
    @inline(never)
    package mutating func inheritOptions(from other: Request) {
        guard sharedOptions == nil else { return }
        sharedOptions = other.sharedOptions
        if let changed = changedOptions(of: options ?? TransferOptions()) { options = changed }
    }

    /// The most bytes that a collected body of this request's response may have, where it inherits options.
    @inline(never)
    package func maximumBodySize(inheritingFrom other: Request) -> Int {
        var request = self
        request.inheritOptions(from: other)
        return request.maximumBodySize
    }

    /// The most bytes that a collected body of this request's response may have.
    package var maximumBodySize: Int { sharedOptions?.value.maximumBodySize ?? TransferOptions().maximumBodySize }

    /// The options as the request changes them; nil when it changes none.
    private func changedOptions(of session: TransferOptions) -> TransferOptions? {
        let changes = self[OptionsChanges.self]
        guard !changes.isEmpty else { return nil }
        var options = session
        for change in changes { change(&options) }
        return options
    }
}

/// What a request changes of the session's options.
package enum OptionsChanges: RequestAttribute {
    /// None.
    package static var defaultValue: [@Sendable (inout TransferOptions) -> Void] { [] }
}

/// Transfer options behind a reference: requests of one session share them, and a transport sees by identity that nothing
/// has changed since the last request.
package final class SharedTransferOptions: Sendable {
    package let value: TransferOptions
    /// Whether TLS is more than a valid chain and the right name.
    package let hasSecurity: Bool

    package init(_ value: TransferOptions) {
        self.value = value
        hasSecurity = value.tls.hasSecurity
    }
}

extension Request: CustomStringConvertible {
    /// The method and the URL, without user information and query values.
    public var description: String {
        "\(method.rawValue) \(url.redactedDescription)"
    }
}
