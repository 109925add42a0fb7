// SPDX-License-Identifier: MIT

public import ANHTTP

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
    /// The rules for queries, and what holds for every request.
    public var base: HTTPRequestSerializer
    /// How JSON is laid out; compact by default.
    public var writingOptions: WritingOptions
    /// How points in time are written; `1970-01-01T00:00:00Z` by default.
    public var dates = Parameters.DateEncoding.iso8601
    /// How bytes are written; Base64 by default.
    public var data = Parameters.DataEncoding.base64

    /// Creates a serializer.
    public init(base: HTTPRequestSerializer = HTTPRequestSerializer(), writingOptions: WritingOptions = []) {
        self.base = base
        self.writingOptions = writingOptions
    }

    /// Returns the request with its query or JSON.
    public func serialize(_ request: Request, parameters: Parameters?) throws(SerializationError) -> Request {
        try base.serialize(request, parameters: parameters, type: "application/json") {
            value throws(SerializationError) in
            var writer = JSONWriter(options: writingOptions, dates: dates, data: data)
            try writer.write(value)
            return writer.result
        }
    }

    /// Returns the request with a multipart form; see ``RequestSerializer/serialize(_:parameters:form:)``.
    public func serialize(
        _ request: Request, parameters: Parameters?, form: MultipartFormData
    ) throws(SerializationError) -> Request {
        try serialize(request, parameters: parameters, form: form, by: base)
    }

    /// How JSON is laid out.
    public struct WritingOptions: OptionSet, Hashable, Sendable {
        /// The options as bits.
        public let rawValue: Int

        /// Creates options from bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// The names of each object are sorted.
        public static let sortedKeys = WritingOptions(rawValue: 1)
        /// A line for each name and each element, indented by two spaces a level.
        public static let prettyPrinted = WritingOptions(rawValue: 2)
        /// `/` is written `\/`, as Apple's platforms do it, for JSON within HTML.
        public static let escapesSlashes = WritingOptions(rawValue: 4)
    }
}
