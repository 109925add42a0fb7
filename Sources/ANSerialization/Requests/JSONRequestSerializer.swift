// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A request serializer that encodes parameters into the query or a JSON body, depending on the method.
///
/// | method | parameters | result |
/// |---|---|---|
/// | in ``HTTPRequestSerializer/queryMethods`` | any | the same as with ``HTTPRequestSerializer`` |
/// | any other | `nil` | no body and no `Content-Type`; a body of the request is kept |
/// | any other | any, including empty | a JSON body, and `Content-Type: application/json` unless it is set |
///
/// Names keep the order of the parameters, unless they are sorted. The outermost value of a body may be of any type
/// (RFC 8259 §2).
public struct JSONRequestSerializer: RequestSerializer {
    /// The serializer for queries, which also provides the fields of every request.
    package var base: HTTPRequestSerializer
    /// The encoder whose strategies for names, dates, bytes and non-finite numbers apply to JSON bodies; `nil`, the
    /// default, for the session's, or without a session one that writes dates as ISO 8601 text. See ``JSONCoding``.
    ///
    /// Of its `outputFormatting`, `sortedKeys` and `prettyPrinted` apply; without them, the text is compact and keeps the
    /// order of the names. It must not be modified once the serializer is used.
    public var encoder: JSONEncoder?

    /// Creates a serializer, whose ``encoder`` is `nil`.
    ///
    /// - Parameter base: The serializer for queries, which also provides the header fields of every request; by default
    ///   without header fields.
    public init(base: HTTPRequestSerializer = HTTPRequestSerializer()) {
        self.base = base
    }

    /// Returns the request with the parameters encoded into its query or a JSON body.
    ///
    /// - Parameters:
    ///   - request: The request, whose header fields are kept.
    ///   - parameters: The parameters; `nil` adds no body, whereas empty parameters are encoded as a JSON body.
    /// - Returns: The request, whose JSON body the session encodes, like ``ANHTTP/RequestBody/json(_:encoder:)``.
    /// - Throws: ``SerializationError/parameters(_:)``, from here or when the session encodes the body, if the parameters
    ///   contain a value that cannot be encoded, such as NaN without a strategy of the ``encoder`` for it or a date outside the years 1 to 9999 in ISO 8601, are
    ///   nested more than 512 levels deep, would become the body of a request that already has one, or, for a query,
    ///   are not a dictionary. A ``SerializationError`` that a closure of the `base`'s encoder throws is thrown
    ///   unchanged.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        try base.serialize(request, parameters: parameters, type: "application/json") {
            value throws(SerializationError) in
            .json(encoder: encoder) { encoder throws(SerializationError) in
                var writer = JSONWriter(encoder: encoder)
                try writer.write(value)
                return writer.result
            }
        }
    }
}

/// A request serializer that encodes parameters into the query or a property list, depending on the method.
///
/// | method | parameters | result |
/// |---|---|---|
/// | in ``HTTPRequestSerializer/queryMethods`` | any | the same as with ``HTTPRequestSerializer`` |
/// | any other | `nil` | no body and no `Content-Type`; a body of the request is kept |
/// | any other | any, including empty | a property list, and `Content-Type: application/x-plist` unless it is set |
///
/// The outermost value must be a dictionary or an array. Property lists support neither null nor dictionaries with repeated names, and the XML
/// format no control characters except tab, LF and CR (XML 1.0 §2.2); other parameters fail with
/// ``SerializationError/parameters(_:)``.
///
/// Dates must be in the years 1 to 9999 for XML, which stores whole seconds, and finite for the binary format; others
/// fail with ``SerializationError/parameters(_:)``. In XML, Foundation writes and reads dates before October 15, 1582
/// in the Julian calendar.
public struct PropertyListRequestSerializer: RequestSerializer {
    /// The serializer for queries, which also provides the fields of every request.
    package var base: HTTPRequestSerializer
    /// The format of property lists; XML by default.
    package var format: Format

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - base: The serializer for queries, which also provides the header fields of every request; by default without header fields.
    ///   - format: The format of property lists; XML by default.
    public init(base: HTTPRequestSerializer = HTTPRequestSerializer(), format: Format = .xml) {
        self.base = base
        self.format = format
    }

    /// Returns the request with the parameters encoded into its query or a property list.
    ///
    /// - Parameters:
    ///   - request: The request, whose header fields are kept.
    ///   - parameters: The parameters; `nil` adds no body, whereas empty parameters are encoded as a body.
    /// - Throws: ``SerializationError/parameters(_:)`` if the parameters contain a value that cannot be encoded, such
    ///   as null in a body, are nested more than 512 levels deep, would become the body of a request that already has
    ///   one, or are not a dictionary in a query, or neither a dictionary nor an array in a body. A
    ///   ``SerializationError`` that a closure of the `base`'s encoder throws is thrown unchanged.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        try base.serialize(request, parameters: parameters, type: "application/x-plist") {
            value throws(SerializationError) in .bytes(try PropertyListTree.write(value, format: format))
        }
    }

    /// A format of property lists; ``xml`` by default.
    @nonexhaustive
    public enum Format: Hashable, Sendable {
        /// The XML format, in UTF-8; the default. It stores dates in whole seconds.
        case xml
        /// Apple's binary format, `bplist00`, which keeps the fractions of seconds in dates.
        case binary
    }
}
