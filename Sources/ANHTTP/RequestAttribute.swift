// SPDX-License-Identifier: MIT

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

/// The attributes of a request. An empty collection allocates no memory, and reading from it is a single comparison.
@usableFromInline
package struct RequestAttributes: Sendable {
    @usableFromInline var values: [ObjectIdentifier: any Sendable] = [:]

    /// Creates an empty collection.
    package init() {}

    @inlinable package subscript<Attribute: RequestAttribute>(_: Attribute.Type) -> Attribute.Value {
        get {
            guard !values.isEmpty, let value = values[ObjectIdentifier(Attribute.self)] else {
                return Attribute.defaultValue
            }
            return value as? Attribute.Value ?? Attribute.defaultValue
        }
        set { values[ObjectIdentifier(Attribute.self)] = newValue }
    }

    /// Adds the attributes of `others` that are not set here.
    package mutating func fill(from others: RequestAttributes) {
        values.merge(others.values) { own, _ in own }
    }
}
