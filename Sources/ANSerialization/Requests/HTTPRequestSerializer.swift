// SPDX-License-Identifier: MIT

public import ANHTTP
public import HTTPTypes

/// A request serializer that encodes parameters into the query or a form, depending on the method.
///
/// | method | parameters | result |
/// |---|---|---|
/// | in ``queryMethods`` | `nil` or empty | the request is unchanged |
/// | in ``queryMethods`` | not empty | the parameters are appended to the query; the body is unchanged |
/// | any other | `nil`, and the request has a body | the request is unchanged |
/// | any other | `nil` or empty | an empty body, `Content-Type: application/x-www-form-urlencoded` |
/// | any other | not empty | the encoded form, `Content-Type: application/x-www-form-urlencoded` |
///
/// In all cases, the ``headers`` are added. A `Content-Type` already set by the request or by ``headers`` is kept.
/// Parameters, even empty ones, for a request that already has a body fail with ``SerializationError/parameters(_:)``,
/// unless they are encoded into the query.
public struct HTTPRequestSerializer: RequestSerializer {
    /// The header fields added to each serialized request that lacks them; empty by default.
    ///
    /// Those passed to a call of a session replace them, and they take precedence over `SessionConfiguration.headers`.
    /// A session does not add them to a `Request` that is passed to it.
    public var headers: HTTPFields
    /// The methods, in upper case, whose parameters are encoded into the query; GET, HEAD and DELETE by default. The
    /// method of a request is compared regardless of case.
    public var queryMethods: Set<HTTPRequest.Method>
    /// The encoder for queries and forms; with the default options by default.
    public var encoder: URLEncodedFormEncoder

    /// Creates a serializer whose other properties have their defaults.
    ///
    /// - Parameters:
    ///   - headers: The header fields added to every request that lacks them; empty by default.
    ///   - queryMethods: The methods, in upper case, whose parameters are encoded into the query; GET, HEAD and DELETE
    ///     by default.
    ///   - encoder: The encoder for queries and forms; with the default options by default.
    public init(
        headers: HTTPFields = [:], queryMethods: Set<HTTPRequest.Method> = [.get, .head, .delete],
        encoder: URLEncodedFormEncoder = URLEncodedFormEncoder()
    ) {
        self.headers = headers
        self.queryMethods = queryMethods
        self.encoder = encoder
    }

    /// Returns the request with the parameters encoded into its query or form.
    ///
    /// - Parameters:
    ///   - request: The request, whose header fields are kept.
    ///   - parameters: The parameters; `nil` keeps the body of a request that has one, whereas empty parameters fail
    ///     for it.
    /// - Throws: ``SerializationError/parameters(_:)`` if the parameters cannot be encoded, or would become the body of
    ///   a request that already has one; a ``SerializationError`` that a closure of the ``encoder`` throws is thrown
    ///   unchanged.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        if let request = try serializeQuery(request, parameters: parameters) { return request }
        var result = request.filling(from: headers)
        guard !request.hasBody else {
            guard parameters == nil else { throw .parameters(.bodyPresent) }
            return result
        }
        result.body = .string(try parameters.map(encoder.encode) ?? "")
        result.headers.fill(.contentType, "application/x-www-form-urlencoded")
        return result
    }

    /// Returns the request with the parameters in its query; `nil` if they belong in the body.
    func serializeQuery(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request? {
        guard HTTPRequest.Method(request.method.rawValue.uppercased()).map(queryMethods.contains) == true else {
            return nil
        }
        var result = request.filling(from: headers)
        if let parameters {
            result.url = try URLEncodedFormEncoder.append(encoder.encode(parameters), to: request.url)
        }
        return result
    }
}

extension Request {
    /// Returns the request with the fields whose names are missing.
    fileprivate func filling(from headers: HTTPFields) -> Request {
        var request = self
        request.headers.fill(from: headers)
        return request
    }
}

extension HTTPFields {
    /// Adds a field unless one with its name exists.
    package mutating func fill(_ name: HTTPField.Name, _ value: String) {
        if first(name) == nil { append(HTTPField(name: name, value: value)) }
    }
}

extension HTTPRequestSerializer {
    /// Returns the request with the parameters in its query, or in a body created by `makeBody`.
    func serialize(
        _ request: Request, parameters: Parameters?, type: String,
        makeBody: (Parameters) throws(SerializationError) -> RequestBody
    ) throws(SerializationError) -> Request {
        if let request = try serializeQuery(request, parameters: parameters) { return request }
        var result = request.filling(from: headers)
        guard let parameters else { return result }
        guard !request.hasBody else { throw .parameters(.bodyPresent) }
        result.body = try makeBody(parameters)
        result.headers.fill(.contentType, type)
        return result
    }
}

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
