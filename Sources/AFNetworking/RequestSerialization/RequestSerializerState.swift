// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

/// What an ``AFHTTPRequestSerializer`` was told; what is nil was not.
struct RequestSerializerState: Sendable {
    var stringEncoding = String.Encoding.utf8
    private(set) var headers: [String: String]
    var wishes = RequestWishes()
    var methodsInURI: Set<String> = ["GET", "HEAD", "DELETE"]
    var style: AFHTTPRequestQueryStringSerializationStyle
    var makeQuery: Handover<AFHTTPRequestSerializer.QueryBlock>?
    /// ``headers`` as the core has them, in the order in which they are sent; nil where one of them cannot be sent.
    private(set) var fields: HTTPFields?

    init(
        headers: [String: String],
        style: AFHTTPRequestQueryStringSerializationStyle = .httpRequestQueryStringDefaultStyle,
        makeQuery: Handover<AFHTTPRequestSerializer.QueryBlock>? = nil
    ) {
        self.headers = headers
        self.style = style
        self.makeQuery = makeQuery
        fields = HTTPFields(sorted: headers)
    }

    /// Sets a header field, in place of one whose name differs in case only; nil removes it.
    mutating func setHeader(_ name: String, _ value: String?) {
        headers.setField(name, value)
        fields = HTTPFields(sorted: headers)
    }
}

/// What a request says besides what it sends; nil leaves it to the session.
struct RequestWishes: Sendable {
    var allowsCellularAccess: Bool?
    var cachePolicy: NSURLRequest.CachePolicy?
    var handlesCookies: Bool?
    /// Kept, and not part of any request here.
    var usesPipelining: Bool?
    var serviceType: NSURLRequest.NetworkServiceType?
    var timeoutInterval: TimeInterval?

    /// Puts the wishes into a request.
    func apply(to request: inout URLRequest) {
        if let allowsCellularAccess { request.allowsCellularAccess = allowsCellularAccess }
        if let cachePolicy { request.cachePolicy = cachePolicy }
        if let handlesCookies { request.httpShouldHandleCookies = handlesCookies }
        if let serviceType { request.networkServiceType = serviceType }
        if let timeoutInterval { request.timeoutInterval = timeoutInterval }
    }
}

/// What parameters become in a request.
enum EncodedParameters {
    /// Nothing.
    case nothing
    /// The end of the URL's query; nothing where it is empty.
    case query(String)
    /// The body, with the media type of a request that names none.
    case body(Data, contentType: String)
}

extension HTTPFields {
    /// The fields of a dictionary in the order of their names; nil where a name is none, or is the length, which follows from
    /// the body.
    init?(sorted headers: [String: String]) {
        var fields: [HTTPField] = []
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            guard let fieldName = HTTPField.Name(name), fieldName != .contentLength else { return nil }
            fields.append(HTTPField(name: fieldName, value: value))
        }
        self.init(fields)
    }
}
