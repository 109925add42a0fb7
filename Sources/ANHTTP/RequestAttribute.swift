// SPDX-License-Identifier: MIT

/// Something that a layer above the transport wants to know of one request, such as a policy of its own or a tag that an
/// interceptor reads.
///
/// The type is the key, as in
///
/// ```swift
/// enum Purpose: RequestAttribute {
///     static let defaultValue = "browsing"
/// }
///
/// request[Purpose.self] = "prefetching"
/// ```
///
/// Attributes are not sent. They go where the request goes: through interceptors, retries and redirects.
public protocol RequestAttribute {
    /// The type of the values.
    associatedtype Value: Sendable
    /// What a request has that was given none.
    static var defaultValue: Value { get }
}

/// The attributes of a request; without any, it takes no memory of its own, and asking for one is a comparison.
@usableFromInline
package struct RequestAttributes: Sendable {
    @usableFromInline var values: [ObjectIdentifier: any Sendable] = [:]

    /// Creates an empty set.
    package init() {}

    @inlinable package subscript<Attribute: RequestAttribute>(_: Attribute.Type) -> Attribute.Value {
        get {
            guard !values.isEmpty else { return Attribute.defaultValue }
            return values[ObjectIdentifier(Attribute.self)] as? Attribute.Value ?? Attribute.defaultValue
        }
        set { values[ObjectIdentifier(Attribute.self)] = newValue }
    }

    /// Adds the attributes that are not here yet.
    package mutating func fill(from others: RequestAttributes) {
        values.merge(others.values) { own, _ in own }
    }
}
