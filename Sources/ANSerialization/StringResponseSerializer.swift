// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials

/// Gives the body as text; written `.string`.
///
/// The first of these that applies decides how the bytes are read. A byte order mark is not part of the text.
///
/// | | encoding | when bytes are invalid in it |
/// |---|---|---|
/// | 1 | ``encoding`` | fails |
/// | 2 | the charset of the `Content-Type` | fails; one that is not known fails too |
/// | 3 | what a byte order mark says | fails |
/// | 4 | UTF-8 | ``fallback`` |
/// | 5 | ``fallback``: Latin-1, in which each byte is valid | fails |
public struct StringResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// The encoding, whatever the response claims; nil to believe the response.
    public var encoding: TextEncoding?
    /// The encoding of bytes that claim none and are not UTF-8; nil to fail.
    public var fallback: TextEncoding?

    /// Creates a serializer that takes any media type unless said otherwise.
    public init(
        encoding: TextEncoding? = nil, fallback: TextEncoding? = .latin1,
        validation: ResponseValidation = .statusOnly
    ) {
        self.encoding = encoding
        self.fallback = fallback
        self.validation = validation
    }

    /// Returns the text; empty for an empty body.
    ///
    /// - Throws: ``SerializationError/text(_:)`` for a charset that is not known, and for bytes that are invalid in the
    ///   one claimed.
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
