// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

extension AFHTTPRequestSerializer {
    /// Returns the request of a verb in the form that the core sends, without creating a `URLRequest`.
    ///
    /// - Parameter headers: Header fields that replace those of the serializer with the same name.
    /// - Returns: The request, or `nil` if a `URLRequest` is needed: for a subclass, for a query block, for a method
    ///   with lowercase letters, some of which Foundation changes, and for parts that the core would refuse.
    func makeRequest(
        _ method: String, _ url: URL, _ parameters: Any?, _ headers: [String: String]?
    ) throws -> SerializedRequest? {
        let state = state.withLock { $0 }
        guard !isSubclassed, state.makeQuery == nil, !method.utf8.contains(where: { 0x61...0x7A ~= $0 }),
            let httpMethod = HTTPRequest.Method(method), var fields = state.fields,
            let replaced = HTTPFields(sorted: headers ?? [:])
        else { return nil }
        var sentURL = url
        var content: Data?
        func foundationRequest() -> URLRequest {
            var request = URLRequest(url: url)
            request.httpMethod = method
            return request
        }
        switch try encode(parameters, for: method, foundationRequest) {
        case .nothing: break
        case .query(let query): sentURL = try url.appendingQueryText(query)
        case .body(let body, let contentType):
            content = body
            if !fields.contains(.contentType) { fields[.contentType] = contentType }
        }
        for field in replaced { fields[field.name] = field.value }
        if content != nil || !replaced.isEmpty {
            fields = HTTPFields(fields.sorted { $0.name.rawName < $1.name.rawName })
        }
        let body = content.map(RequestBody.bytes) ?? .none
        return SerializedRequest(
            request: Request(method: httpMethod, url: sentURL, headers: fields, body: body), settings: state.settings)
    }

    /// Whether the serializer is a subclass, whose methods may be overridden.
    private var isSubclassed: Bool {
        let type = type(of: self)
        return type != AFHTTPRequestSerializer.self && type != AFJSONRequestSerializer.self
            && type != AFPropertyListRequestSerializer.self
    }
}

extension URL {
    /// Returns the URL with `query` appended to its query, before the fragment.
    func appendingQueryText(_ query: String) throws -> URL {
        guard !query.isEmpty else { return self }
        guard let url = URL(string: URLEncodedFormEncoder.text(of: self, appending: query)) else {
            throw NSError.requestSerialization(.badURL, reason: "The query cannot be part of a URL.")
        }
        return url
    }
}

/// The settings of an ``AFHTTPRequestSerializer``.
struct RequestSerializerState: Sendable {
    var stringEncoding = String.Encoding.utf8
    var settings = RequestSettings()
    var methodsInURI: Set<String> = ["GET", "HEAD", "DELETE"]
    var makeQuery: AFHTTPRequestSerializer.QueryBlock?
    var kept: Kept
    /// The header fields in the core's form and in the order in which they are sent; `nil` if one of them cannot be
    /// sent.
    private(set) var fields: HTTPFields?

    /// The settings that archives and copies contain.
    struct Kept: Codable, Sendable {
        var headers = defaultHeaders
        var style = AFHTTPRequestQueryStringSerializationStyle.httpRequestQueryStringDefaultStyle
        /// The raw value of the options for writing the body.
        var options: UInt = 0
        var format = PropertyListSerialization.PropertyListFormat.xml.rawValue

        private static let defaultHeaders = DefaultHeaders(
            process: .current(), libraryVersion: SessionManager.libraryVersion
        ).fields.dictionary
    }

    init(_ kept: Kept, makeQuery: AFHTTPRequestSerializer.QueryBlock? = nil) {
        self.kept = kept
        self.makeQuery = makeQuery
        fields = HTTPFields(sorted: kept.headers)
    }

    /// Sets a header field and replaces one whose name differs only in case; `nil` removes it.
    mutating func setHeader(_ name: String, _ value: String?) {
        kept.headers.setField(name, value)
        fields = HTTPFields(sorted: kept.headers)
    }
}

/// Settings of a request besides URL, header fields and body. For each that is `nil`, the session's setting applies.
struct RequestSettings: Sendable {
    var allowsCellularAccess: Bool?
    var cachePolicy: NSURLRequest.CachePolicy?
    var handlesCookies: Bool?
    /// Stored, but not applied to requests.
    var usesPipelining: Bool?
    var serviceType: NSURLRequest.NetworkServiceType?
    var timeoutInterval: TimeInterval?

    /// Applies the settings to a request.
    func apply(to request: inout URLRequest) {
        if let allowsCellularAccess { request.allowsCellularAccess = allowsCellularAccess }
        if let cachePolicy { request.cachePolicy = cachePolicy }
        if let handlesCookies { request.httpShouldHandleCookies = handlesCookies }
        if let serviceType { request.networkServiceType = serviceType }
        if let timeoutInterval { request.timeoutInterval = timeoutInterval }
    }
}

/// The encoded parameters of a request.
enum EncodedParameters {
    /// No parameters.
    case nothing
    /// Text to append to the query of the URL, possibly empty.
    case query(String)
    /// The body, and the media type for a request without a `Content-Type`.
    case body(Data, contentType: String)
}

/// A serializer that encodes bodies in a format other than that of HTML forms.
protocol BodyEncoder: AFHTTPRequestSerializer {
    /// The media type for a request without a `Content-Type`.
    var contentType: String { get }

    /// Returns the encoded parameters.
    func encodeBody(_ parameters: Any) throws -> Data
}

extension HTTPFields {
    /// Creates fields sorted by name. Returns `nil` if there are too many, if a name is not valid, or if
    /// `Content-Length` is among them, which follows from the body.
    init?(sorted headers: [String: String]) {
        guard headers.count <= HTTPFields.maximumCount else { return nil }
        var fields: [HTTPField] = []
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            guard let fieldName = HTTPField.Name(name), fieldName != .contentLength else { return nil }
            fields.append(HTTPField(name: fieldName, value: value))
        }
        self.init(fields)
    }
}
