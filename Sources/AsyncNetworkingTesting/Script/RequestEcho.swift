// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The JSON response of ``Script/echo``, which describes the received request.
public struct RequestEcho: Codable, Hashable, Sendable {
    /// The method of the request as sent, such as `GET`; it may be any text.
    public var method: String
    /// The request target as sent, such as `/path?query`: percent-encoded, and an absolute URL if the server is used as
    /// a proxy.
    public var target: String
    /// The header fields in the order received, each as an array of its name, with its original case, and its value.
    public var headers: [[String]]
    /// The recorded body as text, empty without a body; `nil`, and absent from the JSON, if it is not valid UTF-8.
    public var body: String?
    /// The recorded body in Base64; `nil`, and absent from the JSON, if it is valid UTF-8.
    public var bodyBase64: String?
    /// The trailer fields in the order received, each as an array of its name, with its original case, and its value;
    /// empty without trailers.
    public var trailers: [[String]]

    /// Creates a description of a request with its recorded body, which a server limits to the first
    /// ``StubServer/Options/maximumRecordedBody`` bytes. If these end within a character, ``bodyBase64`` contains them.
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
    /// The request as the body of a JSON response.
    var echo: Reply.Body {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding strings and arrays of strings does not fail.
        return .bytes((try? encoder.encode(RequestEcho(self))) ?? Data())
    }
}
