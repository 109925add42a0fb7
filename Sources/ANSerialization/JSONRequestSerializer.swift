// SPDX-License-Identifier: MIT

public import ANHTTP
import FoundationEssentials
import HTTPTypes

/// Puts parameters in the query for some methods, and in a JSON body for the others.
///
/// | method | parameters | result |
/// |---|---|---|
/// | in ``HTTPRequestSerializer/queryMethods`` | any | as ``HTTPRequestSerializer`` does it |
/// | another | nil | no body and no `Content-Type`; a body of the request's own stays |
/// | another | any, also empty | JSON, `Content-Type: application/json` unless there is one |
///
/// Names stand in the order of the parameters. Any value may be outermost (RFC 8259 §2).
public struct JSONRequestSerializer: RequestSerializer {
    /// The rules for queries, and the fields for every request.
    public var base: HTTPRequestSerializer
    /// Whether the names of each object are sorted; false by default.
    public var sortsKeys: Bool

    /// Creates a serializer.
    public init(base: HTTPRequestSerializer = HTTPRequestSerializer(), sortsKeys: Bool = false) {
        self.base = base
        self.sortsKeys = sortsKeys
    }

    /// Returns the request with its query or JSON.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        if let request = try base.serializeQuery(request, parameters: parameters) { return request }
        var request = request
        request.headers.fill(from: base.headers)
        guard let parameters else { return request }
        guard !request.hasBody else { throw .parameters(.bodyPresent) }
        request.body = .bytes(try JSONWriter.write(parameters, sortsKeys: sortsKeys))
        request.headers.fill(.contentType, "application/json")
        return request
    }
}
