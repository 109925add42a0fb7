// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
public import HTTPTypes

/// Puts parameters in the query for some methods, and in a form body for the others.
///
/// | method | parameters | result |
/// |---|---|---|
/// | in ``queryMethods`` | nil or empty | the request as it is |
/// | in ``queryMethods`` | others | appended to the query; body and `Content-Type` untouched |
/// | another | nil, with a body of its own | the request as it is |
/// | another | nil or empty | an empty body, `Content-Type: application/x-www-form-urlencoded` |
/// | another | others | the encoded form, `Content-Type: application/x-www-form-urlencoded` |
///
/// A `Content-Type` that is there, on the request or in ``headers``, stays. Parameters beside a body of the request's
/// own fail with ``SerializationError/ParametersProblem/bodyPresent``.
public struct HTTPRequestSerializer: RequestSerializer {
    /// Fields for every request that has none of the same name.
    public var headers: HTTPFields
    /// The methods, in upper case, whose parameters go to the query.
    public var queryMethods: Set<HTTPRequest.Method>
    /// Writes queries and forms.
    public var encoder: URLEncodedFormEncoder

    /// Creates a serializer; the methods are GET, HEAD and DELETE unless said otherwise.
    public init(
        headers: HTTPFields = [:], queryMethods: Set<HTTPRequest.Method> = [.get, .head, .delete],
        encoder: URLEncodedFormEncoder = URLEncodedFormEncoder()
    ) {
        self.headers = headers
        self.queryMethods = queryMethods
        self.encoder = encoder
    }

    /// Returns the request with its query or form.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        if let request = try serializeQuery(request, parameters: parameters) { return request }
        var request = request
        request.headers.fill(from: headers)
        guard !request.hasBody else {
            guard parameters == nil else { throw .parameters(.bodyPresent) }
            return request
        }
        request.body = .string(try encoder.encode(parameters ?? [:]))
        request.headers.fill(.contentType, "application/x-www-form-urlencoded")
        return request
    }

    /// The request with the parameters in its query; nil when the method wants them in the body.
    func serializeQuery(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request? {
        guard
            let method = HTTPRequest.Method(request.method.rawValue.uppercased()), queryMethods.contains(method)
        else { return nil }
        var request = request
        request.headers.fill(from: headers)
        if let parameters { request.url = try encoder.append(parameters, to: request.url) }
        return request
    }
}
