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
