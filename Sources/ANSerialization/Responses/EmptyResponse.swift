// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// The result of a request whose response body is ignored, as returned for `.empty`. All values are equal. Any document
/// can be decoded as one; a malformed one fails in its decoder, such as `JSONDecoder`.
public struct EmptyResponse: Hashable, Sendable, Decodable, EmptyRepresentable {
    /// Creates the value.
    package init() {}

    /// The only value of the type.
    package static var emptyValue: EmptyResponse { EmptyResponse() }
}

/// A type with a value that represents an empty body, such as an optional. See ``EmptyResponseRules``.
package protocol EmptyRepresentable {
    /// The value for an empty body.
    static var emptyValue: Self { get }
}

extension Optional: EmptyRepresentable {
    /// The value for an empty body: `nil`.
    package static var emptyValue: Wrapped? { nil }
}

/// The rules for empty bodies, for the `emptyResponses` of serializers that read a value from the body.
///
/// | body | status | requested type | result |
/// |---|---|---|---|
/// | empty | permitted | an optional | `nil` |
/// | empty | permitted | ``EmptyResponse`` | its only value |
/// | empty | permitted | ``JSONValue`` | ``JSONValue/null`` |
/// | empty | permitted | ``PropertyListValue`` | an empty dictionary |
/// | empty | permitted | any other | ``SerializationError/emptyBody(status:wanted:url:)`` |
/// | empty | any other | any | ``SerializationError/emptyBody(status:wanted:url:)`` |
///
/// With ``json``, the default for JSON, a body of exactly one space counts as empty, too.
///
/// An ``OptionalResponseSerializer`` returns `nil` for an empty body with a permitted status, for any type of its base.
/// The status is validated first; see ``ResponseValidation``.
public struct EmptyResponseRules: Hashable, Sendable {
    /// The statuses with which the body may be empty; `nil` for all.
    package var statuses: Set<Int>?
    /// Whether a body of exactly one space counts as empty; some frameworks send it for "no content".
    package var countsSpace: Bool

    /// Creates rules.
    ///
    /// - Parameters:
    ///   - statuses: The statuses with which the body may be empty; `nil`, the default, for all, and an empty set for
    ///     none.
    ///   - countsSpace: Whether a body of exactly one space counts as empty, as some frameworks send it for "no
    ///     content"; `false` by default. It has no effect for XML.
    public init(statuses: Set<Int>? = nil, countsSpace: Bool = false) {
        self.statuses = statuses
        self.countsSpace = countsSpace
    }

    /// The body may be empty with any status; the default for property lists and XML, and for
    /// ``ResponseSerializer/decodable(_:decoder:mediaTypes:)``.
    public static let anyStatus = EmptyResponseRules()
    /// The body may be empty with 204, 205 and 304, which never have one (RFC 9110 §15.3.5, §15.3.6, §15.4.5). With any
    /// other status, even in a response to HEAD, an empty body fails with
    /// ``SerializationError/emptyBody(status:wanted:url:)``. 304 must also be accepted by the ``ResponseValidation``, which
    /// rejects it by default.
    public static let noContent = EmptyResponseRules(statuses: [204, 205, 304])
    /// The body must not be empty: an empty one fails with ``SerializationError/emptyBody(status:wanted:url:)``.
    package static let never = EmptyResponseRules(statuses: [])
    /// The body may be empty with any status, and a body of exactly one space counts as empty; the default for JSON.
    public static let json = EmptyResponseRules(countsSpace: true)

    /// Returns whether the body counts as empty.
    func isBlank(_ body: Data) -> Bool {
        body.isEmpty || (countsSpace && body.count == 1 && body.first == UInt8(ascii: " "))
    }

    /// Returns whether the body may be empty with a status.
    func allows(_ status: Int) -> Bool {
        statuses?.contains(status) ?? true
    }

    /// Returns the empty value of a type, for a response with an empty body.
    func emptyValue<Value>(_ type: Value.Type, status: Int) throws(SerializationError) -> Value {
        guard allows(status), let type = Value.self as? any EmptyRepresentable.Type,
            let value = type.emptyValue as? Value
        else { throw .emptyBody(status: status, wanted: String(describing: Value.self)) }
        return value
    }
}

/// A serializer that ignores the body, whether or not there is one, for requests whose result is the status; available
/// as `.empty`.
///
/// A session nevertheless receives the body, within the limit for the size of collected bodies.
public struct EmptyResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public var validation: ResponseValidation

    /// Creates a serializer, by default for any media type and the successful statuses.
    package init(validation: ResponseValidation = .statusOnly) {
        self.validation = validation
    }

    /// Returns the only value of ``EmptyResponse``, for every response; the status and media type are not checked here.
    public func serialize(_ head: ResponseHead, _ body: Data) -> EmptyResponse {
        EmptyResponse()
    }
}
