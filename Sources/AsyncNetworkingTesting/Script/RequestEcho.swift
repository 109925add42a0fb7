// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The JSON that ``Script/echo`` answers with: what the server received.
public struct RequestEcho: Codable, Hashable, Sendable {
    /// The method.
    public var method: String
    /// The request target.
    public var target: String
    /// The header fields in order, each a name and a value.
    public var headers: [[String]]
    /// The body as text, where it is UTF-8.
    public var body: String?
    /// The body in Base64, where it is not UTF-8.
    public var bodyBase64: String?
    /// The trailer fields in order, each a name and a value.
    public var trailers: [[String]]

    /// Describes a request.
    public init(_ request: RecordedRequest) {
        method = request.method
        target = request.target
        headers = request.headers.map { [$0.name, $0.value] }
        body = String(validating: request.body, as: UTF8.self)
        bodyBase64 = body == nil ? request.body.base64EncodedString() : nil
        trailers = request.trailers.map { [$0.name, $0.value] }
    }
}

extension RecordedRequest {
    /// The request as JSON.
    var echo: Reply.Body {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings and arrays of strings always have a JSON form.
        return .bytes((try? encoder.encode(RequestEcho(self))) ?? Data())
    }
}
