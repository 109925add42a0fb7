// SPDX-License-Identifier: MIT

import AsyncNetworking
import HTTPTypes

extension Request {
    /// Takes method, URL, header fields and body of a request of Foundation's.
    ///
    /// - Parameters:
    ///   - request: The request; its policies and limits are left to the caller.
    ///   - replaceStream: Makes another stream where the body has to be sent again.
    mutating func take(
        _ request: URLRequest, replaceStream: (@Sendable () async -> Handover<InputStream?>)? = nil
    ) throws(SessionError) {
        guard let url = request.url else { throw .serialization(.url(.noBase(""))) }
        self.url = url
        let name = request.httpMethod ?? "GET"
        guard let method = HTTPRequest.Method(name) else { throw .transport(.invalidRequest(.method(name))) }
        self.method = method
        var length: Int64?
        if let fields = request.allHTTPHeaderFields, !fields.isEmpty {
            for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
                guard let fieldName = HTTPField.Name(name) else {
                    throw .transport(.invalidRequest(.headerName(name)))
                }
                guard fieldName != .contentLength else {
                    length = Int64(value)
                    continue
                }
                headers.append(HTTPField(name: fieldName, value: value))
            }
        }
        if let stream = request.httpBodyStream {
            body = .inputStream(stream, length: length, replace: replaceStream)
        } else if let data = request.httpBody {
            body = .bytes(data)
        }
    }
}

extension URLRequest {
    /// The request as Foundation has it, without its body, based on the one that a task was made with.
    init(_ request: Request, basedOn original: URLRequest) {
        self = original
        url = request.url
        httpMethod = request.method.rawValue
        allHTTPHeaderFields = request.headers.dictionary
        switch request.body.content {
        case .none: httpBody = nil
        case .bytes(let data): httpBody = data
        case .file, .stream: break
        }
    }
}

extension URLRequest {
    /// Sets a header field, in place of one whose name differs in case only. Foundation's own method changes the case of the
    /// name.
    mutating func setField(_ name: String, _ value: String) {
        var fields = allHTTPHeaderFields ?? [:]
        fields.setField(name, value)
        allHTTPHeaderFields = fields
    }
}

extension [String: String] {
    /// Sets a header field, in place of one whose name differs in case only; `nil` removes it.
    mutating func setField(_ name: String, _ value: String?) {
        for other in keys where other.caseInsensitiveCompare(name) == .orderedSame { self[other] = nil }
        self[name] = value
    }
}

extension HTTPURLResponse {
    /// The head as Foundation has it.
    static func make(_ head: ResponseHead) -> HTTPURLResponse? {
        TaskResponse(
            url: head.url, statusCode: head.status.code, httpVersion: head.version.rawValue,
            headerFields: head.headers.dictionary)
    }
}

extension HTTPFields {
    /// The fields as a dictionary; values of one name are joined by commas (RFC 9110 §5.3).
    var dictionary: [String: String] {
        var result: [String: String] = [:]
        for field in self { result.merge([field.name.rawName: field.value]) { "\($0), \($1)" } }
        return result
    }
}

extension ResponseHead {
    /// The bytes that are expected of the body; -1 where that is unknown, as for one that is compressed.
    var expectedContentLength: Int64 {
        if let coding = headers.first(.contentEncoding), coding.lowercased() != "identity" { return -1 }
        return headers.first(.contentLength).flatMap(Int64.init) ?? -1
    }
}

extension ResponseFacts {
    /// The facts of a head, whose response is made only when an error needs it.
    init(_ head: ResponseHead, response: @escaping () -> HTTPURLResponse?) {
        status = head.status.code
        mediaType = head.mediaType
        url = head.url
        self.response = response
    }
}
