// SPDX-License-Identifier: MIT

public import ANHTTP
import HTTPTypes

/// A type that adds parameters to requests.
///
/// `SessionConfiguration.requestSerializer` is the one of a session. Those of the library are `.http`, `.json` and
/// `.propertyList`; a ``JSONRequestSerializer`` without an encoder uses the session's. A serializer of the program's
/// own is a value with its settings as properties, and may be called for several requests at the same time.
public protocol RequestSerializer: Sendable {
    /// Returns the request with parameters added.
    ///
    /// A session calls it for each request that it creates from a method and a target, in the calling task, also
    /// without parameters; not for a `Request` that is passed to it. Other arguments of the call, such as header
    /// fields, are applied to the result.
    ///
    /// - Parameters:
    ///   - request: The request, whose existing header fields are to be kept; its body is that of the call, if any.
    ///   - parameters: The parameters; `nil` without parameters; a serializer may treat empty ones differently.
    /// - Throws: ``SerializationError`` if the parameters cannot be encoded. It reaches the caller of a session as
    ///   `SessionError.serialization`.
    func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request
}

extension RequestSerializer where Self == HTTPRequestSerializer {
    /// A serializer that encodes parameters into the query for GET, HEAD and DELETE, and into a form
    /// (`application/x-www-form-urlencoded`), possibly empty, for all other methods; the default of a session.
    public static var http: HTTPRequestSerializer { HTTPRequestSerializer() }
}

extension RequestSerializer where Self == JSONRequestSerializer {
    /// A serializer that encodes parameters into the query for GET, HEAD and DELETE, and as a JSON body for all other
    /// methods. Without parameters (`nil`) it adds no body.
    public static var json: JSONRequestSerializer { JSONRequestSerializer() }
}

extension RequestSerializer where Self == PropertyListRequestSerializer {
    /// A serializer that encodes parameters into the query for GET, HEAD and DELETE, and as an XML property list for
    /// all other methods. Without parameters (`nil`) it adds no body.
    public static var propertyList: PropertyListRequestSerializer { PropertyListRequestSerializer() }
}
