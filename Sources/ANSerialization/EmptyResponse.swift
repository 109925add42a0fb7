// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The value of a response whose body does not matter.
public struct EmptyResponse: Hashable, Sendable, Decodable, EmptyRepresentable {
    /// Creates the value.
    public init() {}

    /// Takes any document.
    public init(from decoder: any Decoder) {}

    /// The value.
    public static var emptyValue: EmptyResponse { EmptyResponse() }
}

/// A type with a value that stands for an empty body, such as an optional; see ``EmptyResponseRules``.
public protocol EmptyRepresentable {
    /// The value for an empty body.
    static var emptyValue: Self { get }
}

extension Optional: EmptyRepresentable {
    /// An empty body is nil.
    public static var emptyValue: Wrapped? { nil }
}

/// When a response may come without a body, where a serializer needs one to make a value of.
///
/// | body | status | type asked for | result |
/// |---|---|---|---|
/// | empty | one of ``statuses`` | has an empty value: ``EmptyRepresentable`` | that value |
/// | empty | one of ``statuses`` | has none | ``SerializationError/emptyBody(status:wanted:)`` |
/// | empty | another one | any | ``SerializationError/emptyBody(status:wanted:)`` |
///
/// Statuses are validated before; see ``ResponseValidation``.
public struct EmptyResponseRules: Hashable, Sendable {
    /// The statuses with which the body may be missing; nil for all.
    public var statuses: Set<Int>?
    /// Whether a body of exactly one space counts as none: some frameworks send it for "no content".
    public var countsSpace: Bool

    /// Creates rules; the body may be missing with any status unless said otherwise.
    public init(statuses: Set<Int>? = nil, countsSpace: Bool = false) {
        self.statuses = statuses
        self.countsSpace = countsSpace
    }

    /// The body may be missing with any status.
    public static let anyStatus = EmptyResponseRules()
    /// The body may be missing with 204, 205 and 304, which have none by definition (RFC 9110 §15.3.5, §15.3.6, §15.4.5).
    public static let noContent = EmptyResponseRules(statuses: [204, 205, 304])
    /// The body must not be missing.
    public static let never = EmptyResponseRules(statuses: [])
    /// As ``anyStatus``, and a single space is no body: the rules for JSON.
    public static let json = EmptyResponseRules(countsSpace: true)

    /// Whether there is nothing in the body.
    func isBlank(_ body: Data) -> Bool {
        body.isEmpty || (countsSpace && body.count == 1 && body.first == UInt8(ascii: " "))
    }

    /// Whether the body may be missing with this status.
    func allows(_ status: Int) -> Bool {
        statuses?.contains(status) ?? true
    }

    /// The empty value of a type, for a response without a body.
    func emptyValue<Value>(_ type: Value.Type, status: Int) throws(SerializationError) -> Value {
        guard allows(status), let type = Value.self as? any EmptyRepresentable.Type,
            let value = type.emptyValue as? Value
        else { throw .emptyBody(status: status, wanted: String(describing: Value.self)) }
        return value
    }
}
