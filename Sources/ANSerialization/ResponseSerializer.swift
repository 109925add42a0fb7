// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Makes a value from a response.
///
/// It is a value itself, and says which responses it understands.
///
/// One written by hand needs an output and ``serialize(_:_:)``:
///
/// ```swift
/// struct ChecksumSerializer: ResponseSerializer {
///     func serialize(_ head: ResponseHead, _ body: Data) throws -> Int {
///         body.reduce(0) { $0 &+ Int($1) }
///     }
/// }
/// ```
public protocol ResponseSerializer<Output>: Sendable {
    /// What it makes.
    associatedtype Output: Sendable

    /// The responses that it takes, unless the caller says otherwise; by default those with a status of 200 to 299.
    var validation: ResponseValidation { get }

    /// Makes the value, without validating.
    ///
    /// It is called away from the network's thread, and may take its time.
    func serialize(_ head: ResponseHead, _ body: Data) throws -> Output
}

extension ResponseSerializer {
    /// Takes the statuses 200 to 299 with any media type.
    public var validation: ResponseValidation { .statusOnly }

    /// Validates the response, then makes the value.
    ///
    /// - Parameters:
    ///   - head: The response's head.
    ///   - body: Its whole body.
    ///   - validation: Used instead of the serializer's own.
    /// - Throws: ``SerializationError``, or what a serializer written by hand throws.
    public func value(
        of head: ResponseHead, _ body: Data, validation: ResponseValidation? = nil
    ) throws -> Output {
        try (validation ?? self.validation).validate(head, body)
        return try serialize(head, body)
    }
}

extension ResponseSerializer where Self == DataResponseSerializer {
    /// The body as it is; empty for an empty one.
    public static var data: DataResponseSerializer { DataResponseSerializer() }
}

extension ResponseSerializer where Self == StringResponseSerializer {
    /// The body as text, in the charset of its `Content-Type`; empty for an empty one.
    public static var string: StringResponseSerializer { StringResponseSerializer() }

    /// The body as text in this encoding, whatever its `Content-Type` says.
    public static func string(_ encoding: TextEncoding) -> StringResponseSerializer {
        StringResponseSerializer(encoding: encoding)
    }
}

extension ResponseSerializer where Self == JSONResponseSerializer {
    /// The body as a ``JSONValue``.
    public static var json: JSONResponseSerializer { JSONResponseSerializer() }
}

extension ResponseSerializer where Self == EmptyResponseSerializer {
    /// Nothing of the body: for requests that matter by their status only.
    public static var empty: EmptyResponseSerializer { EmptyResponseSerializer() }
}

extension ResponseSerializer {
    /// The body as JSON of this type; nil for an empty body where the type is an optional.
    public static func decodable<Value>(
        _ type: Value.Type, decoder: JSONDecoder = JSONDecoder()
    ) -> Self where Self == DecodableResponseSerializer<Value> {
        DecodableResponseSerializer(type, decoder: decoder)
    }

    /// What another serializer makes; nil where that one misses a body.
    public static func optional<Base>(_ base: Base) -> Self where Self == OptionalResponseSerializer<Base> {
        OptionalResponseSerializer(base)
    }
}
