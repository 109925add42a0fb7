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
    /// For a call with a multipart form, the parameters are `nil`: the session adds them to the form, which replaces
    /// the body of the result unless it is empty. For a serializer of the program's own, they are encoded in UTF-8 by a
    /// ``URLEncodedFormEncoder`` with the default options.
    ///
    /// - Parameters:
    ///   - request: The request, whose existing header fields are to be kept; its body is that of the call, if any.
    ///   - parameters: The parameters; `nil` without parameters; a serializer may treat empty ones differently.
    /// - Throws: ``SerializationError`` if the parameters cannot be encoded. It reaches the caller of a session as
    ///   `SessionError.serialization`.
    func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request
}

/// A request serializer that also determines how the fields of multipart forms are encoded.
package protocol FormFieldSerializer: RequestSerializer {
    /// The serializer whose encoder and text encoding apply to fields.
    var fieldSerializer: HTTPRequestSerializer { get }
}

extension RequestSerializer {
    /// Returns the request with a multipart form as its body: first a field for each parameter, then the parts of the
    /// form. The method is not considered.
    ///
    /// The form's `Content-Type` replaces all others. Without parameters and parts, the result is that of
    /// ``serialize(_:parameters:)`` without parameters.
    ///
    /// - Throws: ``SerializationError`` if the parameters cannot be encoded or the form is invalid.
    package func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData
    ) throws(SerializationError) -> Request {
        let base = (self as? any FormFieldSerializer)?.fieldSerializer ?? HTTPRequestSerializer()
        return try serialize(request, parameters: parameters, form: form, by: base)
    }

    /// Returns the request with a multipart form, with field names and text encoded as by `base`.
    func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData, by base: HTTPRequestSerializer
    ) throws(SerializationError) -> Request {
        var result = try serialize(request, parameters: nil)
        var form = form
        if let parameters {
            try form.prepend(parameters, encoder: base.encoder, stringEncoding: base.stringEncoding)
        }
        guard !form.isEmpty else { return result }
        guard !request.hasBody else { throw .parameters(.bodyPresent) }
        let (contentType, body) = try form.makeBody()
        result.headers[.contentType] = contentType
        result.body = body
        return result
    }
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
