// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
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
///
/// What the serializer says of options and attributes holds for each request that it makes, as far as it was said; all
/// else stays as the session says:
///
/// ```swift
/// var serializer = HTTPRequestSerializer()
/// try serializer.headers.setBearerAuthorization("token")
/// serializer.changeOptions { $0.timeouts.idle = .seconds(5) }
/// serializer[Purpose.self] = "prefetching"
/// ```
public struct HTTPRequestSerializer: RequestSerializer {
    /// Fields for every request that has none of the same name.
    public var headers: HTTPFields
    /// The methods, in upper case, whose parameters go to the query.
    public var queryMethods: Set<HTTPRequest.Method>
    /// Where parameters go; by the method unless said otherwise.
    public var destination = Destination.byMethod
    /// Writes queries and forms, and the names of multipart fields.
    public var encoder: URLEncodedFormEncoder
    /// Makes the text of queries and forms in place of ``encoder``, from the request as it was given and the parameters.
    ///
    /// It is called where there are parameters, also empty ones. Its text is sent as it is, so it escapes what must be.
    public var customQuery: (@Sendable (Request, Parameters) throws -> String)?
    /// What turns the text of forms, and of the fields of multipart forms, into bytes; UTF-8 by default. What is
    /// percent-encoded is so in UTF-8, whatever is chosen here.
    public var stringEncoding = String.Encoding.utf8

    private var attributes = RequestAttributes()
    private var optionsChanges: [@Sendable (inout TransferOptions) -> Void] = []

    /// Creates a serializer; the methods are GET, HEAD and DELETE unless said otherwise.
    public init(
        headers: HTTPFields = [:], queryMethods: Set<HTTPRequest.Method> = [.get, .head, .delete],
        encoder: URLEncodedFormEncoder = URLEncodedFormEncoder()
    ) {
        self.headers = headers
        self.queryMethods = queryMethods
        self.encoder = encoder
    }

    /// Changes some of each request's transfer options and leaves the others as the session says; options of a request's
    /// own stay as they are.
    public mutating func changeOptions(_ change: @escaping @Sendable (inout TransferOptions) -> Void) {
        optionsChanges.append(change)
    }

    /// An attribute of each request that has not got it; see ``ANHTTP/RequestAttribute``.
    public subscript<Attribute: RequestAttribute>(_ attribute: Attribute.Type) -> Attribute.Value {
        get { attributes[attribute] }
        set { attributes[attribute] = newValue }
    }

    /// Returns the request with its query or form.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        if let request = try serializeQuery(request, parameters: parameters) { return request }
        var result = prepared(request)
        guard !request.hasBody else {
            guard parameters == nil else { throw .parameters(.bodyPresent) }
            return result
        }
        let text = if let parameters { try text(parameters, for: request) } else { "" }
        guard let bytes = text.data(using: stringEncoding) else { throw .parameters(.textEncoding(path: text)) }
        result.body = .bytes(bytes)
        result.headers.fill(.contentType, "application/x-www-form-urlencoded")
        return result
    }

    /// Returns the request with a multipart form; see ``RequestSerializer/serialize(_:parameters:form:)``.
    public func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData
    ) throws(SerializationError) -> Request {
        try serialize(request, parameters: parameters, form: form, by: self)
    }

    /// The request with the parameters in its query; nil when they go to the body.
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

    /// The request with what the serializer says of every request.
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

    /// Where parameters go.
    @nonexhaustive
    public enum Destination: Hashable, Sendable {
        /// To the query for ``HTTPRequestSerializer/queryMethods``, to the body for other methods.
        case byMethod
        /// To the query, whatever the method is.
        case query
        /// To the body, whatever the method is.
        case body
    }
}
