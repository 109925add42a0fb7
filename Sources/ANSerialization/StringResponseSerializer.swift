// SPDX-License-Identifier: MIT

public import ANHTTP
public import FoundationEssentials
import HTTPTypes

/// Gives the body as text; written `.string`.
///
/// The encoding is, in this order: ``encoding``; the charset of the `Content-Type`; what a byte order mark says; UTF-8
/// where the bytes are valid in it; Latin-1. A byte order mark is not part of the text.
public struct StringResponseSerializer: ResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// The encoding, whatever the response claims; nil to believe the response.
    public var encoding: TextEncoding?

    /// Creates a serializer that takes any media type unless said otherwise.
    public init(encoding: TextEncoding? = nil, validation: ResponseValidation = .statusOnly) {
        self.encoding = encoding
        self.validation = validation
    }

    /// Returns the text; empty for an empty body.
    ///
    /// - Throws: ``SerializationError/text(_:)`` for a charset that is not known, and for bytes that are invalid in the
    ///   one claimed.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> String {
        if let encoding { return try decode(body, encoding, charset: encoding.rawValue) }
        if let charset = head.charset {
            guard let encoding = TextEncoding(charset: charset) else { throw .text(.unknownCharset(charset)) }
            return try decode(body, encoding, charset: charset)
        }
        if let encoding = TextEncoding(byteOrderMarkOf: body) {
            return try decode(body, encoding, charset: encoding.rawValue)
        }
        if let text = TextEncoding.utf8.decode(body) { return text }
        return try decode(body, .latin1, charset: TextEncoding.latin1.rawValue)
    }

    private func decode(
        _ body: Data, _ encoding: TextEncoding, charset: String
    ) throws(SerializationError) -> String {
        guard let text = encoding.decode(body) else { throw .text(.invalidBytes(charset: charset)) }
        return text
    }
}

extension ResponseHead {
    /// The charset parameter of the `Content-Type`, in lower case and without quotes (RFC 9110 §8.3.1).
    var charset: String? {
        guard let value = headers.first(where: { $0.name == .contentType })?.value else { return nil }
        for parameter in value.split(separator: ";").dropFirst() {
            let parts = parameter.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].trimmed.lowercased() == "charset" else { continue }
            let charset = parts[1].trimmed.trimming { $0 == "\"" || $0 == "'" }
            return charset.isEmpty ? nil : charset.lowercased()
        }
        return nil
    }
}

extension Substring {
    /// The text without spaces and tabs at its ends.
    fileprivate var trimmed: Substring { trimming(\.isWhitespace) }

    fileprivate func trimming(_ predicate: (Character) -> Bool) -> Substring {
        var rest = drop(while: predicate)
        while let last = rest.last, predicate(last) { rest.removeLast() }
        return rest
    }
}
