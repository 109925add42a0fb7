// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import HTTPTypes

extension AFHTTPRequestSerializer {
    /// Makes what is sent of a verb's parts, without a request of Foundation's in between.
    ///
    /// - Parameter headers: Fields that replace all others of the same names.
    /// - Returns: The request; nil where it takes one of Foundation's, for a subclass, for a block that writes queries, for
    ///   a method in lower case, some of which Foundation changes, or where the core would refuse a part of it.
    func makeRequest(
        _ method: String, _ url: URL, _ parameters: Any?, _ headers: [String: String]?
    ) throws -> MadeRequest? {
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
        return MadeRequest(method: httpMethod, url: sentURL, headers: fields, body: content, wishes: state.wishes)
    }

    /// Whether methods may be overridden.
    private var isSubclassed: Bool {
        let type = type(of: self)
        return type != AFHTTPRequestSerializer.self && type != AFJSONRequestSerializer.self
            && type != AFPropertyListRequestSerializer.self
    }
}

extension URL {
    /// The URL with this text at the end of its query, which is before the fragment.
    func appendingQueryText(_ query: String) throws -> URL {
        guard !query.isEmpty else { return self }
        let text = absoluteString
        let head = text.prefix { $0 != "#" }
        let separator = !head.contains("?") ? "?" : head.hasSuffix("?") || head.hasSuffix("&") ? "" : "&"
        guard let url = URL(string: "\(head)\(separator)\(query)\(text[head.endIndex...])") else {
            throw NSError.requestSerialization(.badURL, reason: "The query cannot stand in a URL.")
        }
        return url
    }
}
