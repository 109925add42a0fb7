// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials

/// Puts parameters in the query for some methods, and in a body that is a property list for the others.
///
/// | method | parameters | result |
/// |---|---|---|
/// | in ``HTTPRequestSerializer/queryMethods`` | any | as ``HTTPRequestSerializer`` does it |
/// | another | nil | no body and no `Content-Type`; a body of the request's own stays |
/// | another | any, also empty | a property list, `Content-Type: application/x-plist` unless there is one |
///
/// A dictionary or an array is outermost. Property lists have no null and no dictionary whose names repeat, and in XML no
/// control characters: such parameters fail with ``SerializationError/ParametersProblem/notInPropertyList(path:reason:)``.
/// Dates lie in the years 1 to 9999 in XML, which has whole seconds only, and are any finite number in the binary format;
/// others fail with ``SerializationError/ParametersProblem/dateOutOfRange(path:)``. Foundation writes dates before 15 October
/// 1582 in the Julian calendar into XML, and reads them so.
public struct PropertyListRequestSerializer: RequestSerializer {
    /// The rules for queries, and what holds for every request.
    public var base: HTTPRequestSerializer
    /// The format, `.xml` or `.binary`.
    public var format: Format

    /// Creates a serializer; the format is XML unless said otherwise.
    public init(base: HTTPRequestSerializer = HTTPRequestSerializer(), format: Format = .xml) {
        self.base = base
        self.format = format
    }

    /// Returns the request with its query or property list.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        try base.serialize(request, parameters: parameters, type: "application/x-plist") {
            value throws(SerializationError) in try PropertyListTree.write(value, format: format)
        }
    }

    /// Returns the request with a multipart form; see ``RequestSerializer/serialize(_:parameters:form:)``.
    public func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData
    ) throws(SerializationError) -> Request {
        try serialize(request, parameters: parameters, form: form, by: base)
    }

    /// The formats in which property lists are written.
    @nonexhaustive
    public enum Format: Hashable, Sendable {
        /// XML.
        case xml
        /// Apple's binary format.
        case binary
    }
}
