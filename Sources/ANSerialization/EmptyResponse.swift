// SPDX-License-Identifier: MIT

/// The value of a response whose body does not matter.
public struct EmptyResponse: Hashable, Sendable, Decodable, EmptyRepresentable {
    /// Creates the value.
    public init() {}

    /// Takes any document.
    public init(from decoder: any Decoder) {}

    /// The value.
    public static var emptyValue: EmptyResponse { EmptyResponse() }
}

/// A type with a value that stands for an empty body, such as an optional; see ``DecodableResponseSerializer``.
public protocol EmptyRepresentable {
    /// The value for an empty body.
    static var emptyValue: Self { get }
}

extension Optional: EmptyRepresentable {
    /// An empty body is nil.
    public static var emptyValue: Wrapped? { nil }
}
