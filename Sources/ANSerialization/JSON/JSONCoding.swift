// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// The encoder and the decoder that a session uses for JSON by default.
///
/// | JSON | used |
/// |---|---|
/// | request bodies passed as `json:` | the encoder |
/// | parameters of a ``JSONRequestSerializer`` | the encoder, see ``JSONRequestSerializer/encoder`` |
/// | ``ResponseSerializer/decodable(_:decoder:)``, ``Rejection/decoded(as:decoder:)``, decoded events | the decoder |
/// | `ResponseBody.jsonLines(of:)` and `jsonSequence(of:)` | the decoder |
///
/// An encoder or decoder that is passed to one of these replaces it. By default, dates are read and written as ISO 8601
/// text, written in UTC and whole seconds, such as `1970-01-01T00:00:00Z`; the other strategies are Foundation's
/// defaults. Bodies that are created without a session, such as `RequestBody.jsonLines(_:encoder:)`, use these defaults
/// instead of a session's encoder.
///
/// ```swift
/// let api = SessionManager(baseURL: url) {
///     $0.json.encoder.keyEncodingStrategy = .convertToSnakeCase
///     $0.json.decoder.keyDecodingStrategy = .convertFromSnakeCase
/// }
/// ```
public struct JSONCoding: Sendable {
    /// The encoder; by default a `JSONEncoder` that writes dates as ISO 8601 text, in UTC and whole seconds. It must
    /// not be modified once a session uses it.
    ///
    /// It is an object, which copies of this value share: assign a new one to change the encoder of one copy.
    public var encoder = JSONEncoder()
    /// The decoder; by default a `JSONDecoder` that reads dates from ISO 8601 text. It must not be modified once a
    /// session uses it.
    ///
    /// It is an object, which copies of this value share: assign a new one to change the decoder of one copy.
    public var decoder = JSONDecoder()

    /// Creates an encoder and a decoder for dates by ISO 8601.
    package init() {
        encoder.dateEncodingStrategy = .iso8601
        decoder.dateDecodingStrategy = .iso8601
    }

    /// The values used outside of a session.
    package static let standard = JSONCoding()
}

/// The key of the session's encoder, by which it reaches the serializer of a request.
package enum SessionJSONEncoder: RequestAttribute {
    /// No encoder.
    package static var defaultValue: JSONEncoder? { nil }
}
