// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// A serializer that decodes the body as text, available as `.string`.
///
/// The encoding is the first of the following that applies. The byte order mark of a Unicode encoding is not part of
/// the text, and does not override a declared charset.
///
/// | | encoding | invalid bytes |
/// |---|---|---|
/// | 1 | `encoding` | fail |
/// | 2 | the charset of the `Content-Type` | fail, as does an unknown charset |
/// | 3 | the one indicated by a byte order mark | fail |
/// | 4 | UTF-8 | cause `fallback` to be used |
/// | 5 | `fallback`: by default Latin-1, in which every byte is valid; with `nil`, reading fails | fail |
public struct StringResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public var validation: ResponseValidation
    /// The encoding to use regardless of the response; `nil`, the default, to determine it from the response.
    package var encoding: TextEncoding?
    /// The encoding of a body that declares no encoding and is not UTF-8; Latin-1 by default, `nil` to fail.
    package var fallback: TextEncoding?

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - encoding: The encoding to use regardless of the response; `nil`, the default, to determine it from the
    ///     response.
    ///   - fallback: The encoding of a body without a charset or byte order mark that is not UTF-8; Latin-1 by default,
    ///     `nil` to fail. It has no effect if `encoding` is not `nil`.
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with any media type.
    public init(
        encoding: TextEncoding? = nil, fallback: TextEncoding? = .latin1,
        validation: ResponseValidation = .statusOnly
    ) {
        self.encoding = encoding
        self.fallback = fallback
        self.validation = validation
    }

    /// Returns the text, empty for an empty body; the status and media type are not checked here.
    ///
    /// - Parameters:
    ///   - head: The head of the response, whose `Content-Type` may declare the charset.
    ///   - body: The complete body.
    /// - Throws: ``SerializationError/text(_:)`` if the declared charset is unknown, or the body is invalid in the
    ///   encoding.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> String {
        if let encoding { return try decode(body, encoding, charset: encoding.name) }
        if let charset = head.charset {
            guard let encoding = TextEncoding(charset: charset) else { throw .text(.unknownCharset(charset)) }
            return try decode(body, encoding, charset: charset)
        }
        if let encoding = TextEncoding(byteOrderMarkOf: body) {
            return try decode(body, encoding, charset: encoding.name)
        }
        if let text = TextEncoding.utf8.decode(body) { return text }
        guard let fallback else { throw .text(.invalidBytes(charset: TextEncoding.utf8.name)) }
        return try decode(body, fallback, charset: fallback.name)
    }

    private func decode(
        _ body: Data, _ encoding: TextEncoding, charset: String
    ) throws(SerializationError) -> String {
        guard let text = encoding.decode(body) else { throw .text(.invalidBytes(charset: charset)) }
        return text
    }
}
