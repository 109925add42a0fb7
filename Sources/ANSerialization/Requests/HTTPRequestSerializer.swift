// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
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
/// This is the default ``destination``. In all cases, the ``headers`` are added. A `Content-Type` already set by the
/// request or by ``headers`` is kept. Parameters, even empty ones, for a request that already has a body fail with
/// ``SerializationError/parameters(_:)``, unless they are encoded into the query. With a ``customQuery``, empty
/// parameters are the same as others.
public struct HTTPRequestSerializer: FormFieldSerializer {
    /// The header fields added to each serialized request that lacks them; empty by default.
    ///
    /// Those passed to a call of a session replace them, and they take precedence over `SessionConfiguration.headers`.
    /// A session does not add them to a `Request` that is passed to it.
    public var headers: HTTPFields
    /// The methods, in upper case, whose parameters are encoded into the query; GET, HEAD and DELETE by default. The
    /// method of a request is compared regardless of case. It has no effect on requests with parameters unless
    /// ``destination`` is ``Destination/byMethod``.
    public var queryMethods: Set<HTTPRequest.Method>
    /// The destination of the parameters; ``Destination/byMethod`` by default. It has no effect on requests whose
    /// parameters are `nil`.
    public var destination = Destination.byMethod
    /// The encoder for queries, forms, and the names and values of multipart fields; with the default options by
    /// default. For queries and forms, ``customQuery`` takes precedence.
    public var encoder: URLEncodedFormEncoder
    /// A closure that encodes queries and forms instead of ``encoder``; `nil`, the default, for none. It does not apply
    /// to multipart fields, nor to the bodies of ``JSONRequestSerializer`` and ``PropertyListRequestSerializer``.
    ///
    /// It receives the original request and the parameters, and is called by ``serialize(_:parameters:)`` whenever
    /// there are parameters, even empty ones, possibly for several requests at the same time. Its result is sent
    /// unchanged, so it must percent-encode where necessary: a query with `#` or characters that a URL cannot contain
    /// fails with ``SerializationError/parameters(_:)``, as does an error that it throws. An empty query leaves the URL
    /// unchanged.
    public var customQuery: (@Sendable (Request, Parameters) throws -> String)?
    /// The text encoding of the bytes of forms and of the values of multipart fields; UTF-8 by default.
    ///
    /// Percent-encoding always uses UTF-8, so a form is affected only by ``customQuery``, ``Parameters/raw(_:)`` and
    /// encodings that do not contain ASCII. `Content-Type` does not name the encoding. Text that
    /// `String.data(using:allowLossyConversion:)` cannot convert without loss fails with
    /// ``SerializationError/parameters(_:)``.
    public var stringEncoding = String.Encoding.utf8

    private var attributes = RequestAttributes()
    private var optionsChanges: [@Sendable (inout TransferOptions) -> Void] = []

    /// Creates a serializer whose other properties have their defaults.
    ///
    /// - Parameters:
    ///   - headers: The header fields added to every request that lacks them; empty by default.
    ///   - queryMethods: The methods, in upper case, whose parameters are encoded into the query; GET, HEAD and DELETE
    ///     by default.
    ///   - encoder: The encoder for queries, forms and multipart fields; with the default options by default.
    public init(
        headers: HTTPFields = [:], queryMethods: Set<HTTPRequest.Method> = [.get, .head, .delete],
        encoder: URLEncodedFormEncoder = URLEncodedFormEncoder()
    ) {
        self.headers = headers
        self.queryMethods = queryMethods
        self.encoder = encoder
    }

    /// Changes some transfer options of each request and inherits the others from the session. Requests that have their
    /// own options are not affected.
    package mutating func changeOptions(_ change: @escaping @Sendable (inout TransferOptions) -> Void) {
        optionsChanges.append(change)
    }

    /// The value of an attribute for each request that has not set it. See ``ANHTTP/RequestAttribute``.
    package subscript<Attribute: RequestAttribute>(_ attribute: Attribute.Type) -> Attribute.Value {
        get { attributes[attribute] }
        set { attributes[attribute] = newValue }
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
        var result = prepared(request)
        guard !request.hasBody else {
            guard parameters == nil else { throw .parameters(.bodyPresent) }
            return result
        }
        let text = if let parameters { try text(parameters, for: request) } else { "" }
        guard let bytes = text.data(using: stringEncoding) else { throw .parameters(.textEncoding(path: nil)) }
        result.body = .bytes(bytes)
        result.headers.fill(.contentType, "application/x-www-form-urlencoded")
        return result
    }

    /// The serializer whose encoder and text encoding apply to fields of forms.
    package var fieldSerializer: HTTPRequestSerializer { self }

    /// Returns the request with the parameters in its query; `nil` if they belong in the body.
    func serializeQuery(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request? {
        let isByMethod = HTTPRequest.Method(request.method.rawValue.uppercased()).map(queryMethods.contains) ?? false
        switch destination {
        case .byMethod: guard isByMethod else { return nil }
        case .query: guard parameters != nil || isByMethod else { return nil }
        case .body: guard parameters == nil, isByMethod else { return nil }
        }
        var result = prepared(request)
        if let parameters {
            result.url = try URLEncodedFormEncoder.append(text(parameters, for: request), to: request.url)
        }
        return result
    }

    /// Returns the request with the serializer's fields, attributes and options.
    func prepared(_ request: Request) -> Request {
        var request = request
        request.headers.fill(from: headers)
        request.attributes.fill(from: attributes)
        if request.options == nil {
            for change in optionsChanges { request.changeOptions(change) }
        }
        return request
    }

    private func text(_ parameters: Parameters, for request: Request) throws(SerializationError) -> String {
        guard let customQuery else { return try encoder.encode(parameters) }
        do {
            return try customQuery(request, parameters)
        } catch {
            throw .parameters(.custom(error))
        }
    }

    /// The destination of parameters; ``byMethod`` by default. A request without parameters (`nil`) is treated in the
    /// same way by all cases: it gets an empty form unless its method is one of ``HTTPRequestSerializer/queryMethods``
    /// or it has a body. ``JSONRequestSerializer`` and ``PropertyListRequestSerializer`` add no body to it.
    @nonexhaustive
    public enum Destination: Hashable, Sendable {
        /// The query for methods in ``HTTPRequestSerializer/queryMethods``, the body for all others.
        case byMethod
        /// The query, for any method; a request with parameters, even empty ones, gets no body, and keeps one that it
        /// has.
        case query
        /// The body, for any method, even for GET and empty parameters. A request with parameters that already has a
        /// body fails.
        case body
    }
}

extension HTTPFields {
    /// Adds the fields whose names are missing, with all of their values.
    mutating func fill(from defaults: HTTPFields) {
        var result = self
        for field in defaults where first(field.name) == nil {
            result.append(field)
        }
        self = result
    }

    /// Adds a field unless one with its name exists.
    mutating func fill(_ name: HTTPField.Name, _ value: String) {
        if first(name) == nil { append(HTTPField(name: name, value: value)) }
    }
}

extension Request {
    /// Whether the request has a body, even an empty one.
    var hasBody: Bool {
        if case .none = body.content { false } else { true }
    }

    /// Sets a JSON body, and `Content-Type` unless it is set.
    package mutating func setBody(json value: any Encodable, encoder: JSONEncoder) throws(SerializationError) {
        guard !hasBody else { throw .parameters(.bodyPresent) }
        do {
            body = .bytes(try encoder.encode(value))
        } catch {
            throw .encoding(value, error)
        }
        headers.fill(.contentType, "application/json")
    }
}

extension HTTPRequestSerializer {
    /// Returns the request with the parameters in its query, or in a body created by `write`.
    func serialize(
        _ request: Request, parameters: Parameters?, type: String,
        write: (Parameters) throws(SerializationError) -> Data
    ) throws(SerializationError) -> Request {
        if let request = try serializeQuery(request, parameters: parameters) { return request }
        var result = prepared(request)
        guard let parameters else { return result }
        guard !request.hasBody else { throw .parameters(.bodyPresent) }
        result.body = .bytes(try write(parameters))
        result.headers.fill(.contentType, type)
        return result
    }
}
