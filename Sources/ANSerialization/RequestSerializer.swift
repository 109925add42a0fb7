// SPDX-License-Identifier: MIT

public import ANHTTP
import HTTPTypes

/// Makes a request from another one and parameters.
///
/// It is a value: what it needs, it holds.
public protocol RequestSerializer: Sendable {
    /// Returns the request with the parameters in it.
    ///
    /// Header fields that the request has already are kept; nil parameters mean that there are none, which differs from
    /// empty ones.
    ///
    /// - Throws: ``SerializationError``.
    func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request

    /// Returns the request with a multipart form as its body: first a field for each of the parameters, then the form's
    /// own parts. Any method may have one.
    ///
    /// The form's `Content-Type` replaces every other. With neither parameters nor parts the request is what
    /// ``serialize(_:parameters:)`` makes of no parameters.
    ///
    /// - Throws: ``SerializationError``.
    func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData
    ) throws(SerializationError) -> Request
}

extension RequestSerializer {
    /// Names the fields as a ``URLEncodedFormEncoder`` does without options.
    public func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData
    ) throws(SerializationError) -> Request {
        try serialize(request, parameters: parameters, form: form, by: HTTPRequestSerializer())
    }

    /// Names the fields and encodes their text as `base` does.
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
    /// Parameters in the query for GET, HEAD and DELETE, in a form body for all other methods.
    public static var http: HTTPRequestSerializer { HTTPRequestSerializer() }
}

extension RequestSerializer where Self == JSONRequestSerializer {
    /// Parameters in the query for GET, HEAD and DELETE, in a JSON body for all other methods.
    public static var json: JSONRequestSerializer { JSONRequestSerializer() }
}

extension RequestSerializer where Self == PropertyListRequestSerializer {
    /// Parameters in the query for GET, HEAD and DELETE, in a property list of XML for all other methods.
    public static var propertyList: PropertyListRequestSerializer { PropertyListRequestSerializer() }
}
