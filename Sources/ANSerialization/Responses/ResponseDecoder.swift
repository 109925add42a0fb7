// SPDX-License-Identifier: MIT

import ANHTTP
public import FoundationEssentials

/// A decoder of documents in a particular format, such as `JSONDecoder`, `PropertyListDecoder`, or one from another
/// package.
///
/// Most decoders only need to declare the conformance:
///
/// ```swift
/// extension MessagePackDecoder: ResponseDecoder {}
/// ```
public protocol ResponseDecoder: Sendable {
    /// Returns a value of a type, decoded from a complete document.
    ///
    /// It is called in the tasks that deserialize responses, JSON streams or server-sent events, possibly concurrently;
    /// not for an empty body, nor for a single space if the serializer's ``EmptyResponseRules`` count it as empty. The
    /// data of a server-sent event may be empty.
    ///
    /// - Throws: Usually `DecodingError`, whose path the library reports in ``SerializationError/decoding(_:)``; any
    ///   other error is reported in the same case, with its description and without a path.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

/// A decoder that checks documents, and locates errors in them.
package protocol CheckingDecoder {
    /// Returns the document to decode.
    ///
    /// - Throws: ``SerializationError`` for a document that must not be decoded, such as one that is nested too deeply.
    func prepared(_ data: Data) throws(SerializationError) -> Data

    /// Returns the error of a document that could not be decoded, if it is not in the decoder's format at all.
    func formatError(in data: Data) -> SerializationError?

    /// Returns the byte offset of the value at a coding path; `nil` if it is unknown.
    func offset(of path: [any CodingKey], in data: Data) -> Int?
}

extension JSONDecoder: ResponseDecoder, CheckingDecoder {
    /// Returns the data unchanged, except that a line break follows JSON5, or members without braces, that end with a
    /// letter or digit. At the end of a number, such as a hexadecimal one of more than 64 bits, Foundation's decoder may
    /// read the bytes after it, also those after the end of the data, and ends the process if they occur in numbers.
    ///
    /// - Throws: ``SerializationError/json(_:)`` for UTF-16, UTF-32 and commas before the end of an array or object,
    ///   which Foundation's decoder accepts although they are not JSON; for numbers at which it would end the process;
    ///   for strings with which it would be busy for minutes; or, if the decoder allows JSON5, for invalid UTF-8, with which it would, too.
    package func prepared(_ data: Data) throws(SerializationError) -> Data {
        // In UTF-16 and UTF-32, the numbers would not be inspected.
        let isWide = JSONNumbers.isWide(data)
        if allowsJSON5, isWide || String(validating: data, as: UTF8.self) == nil {
            throw .json(.init(.json(.invalidUTF8), offset: 0, excerpt: Excerpt.of(data)))
        }
        if let failure = JSONNumbers.failure(in: data, isJSON5: allowsJSON5) {
            if failure.isMalformed, !allowsJSON5, let error = formatError(in: data) { throw error }
            let offset = failure.isMalformed ? 0 : failure.offset
            let reason: SerializationError.Failure.JSONReason =
                failure.isMalformed ? .malformedJSON5 : .numberOutOfRange
            throw .json(.init(.json(reason), offset: offset, excerpt: Excerpt.around(offset, in: data)))
        }
        if CombiningRun.isTooLong(inJSON: data) {
            throw .json(.init(.json(.combiningRun), offset: 0, excerpt: Excerpt.of(data)))
        }
        if !allowsJSON5, assumesTopLevelDictionary ? isWide : JSONParser.mayBeExtended(data),
            let failure = formatError(in: data)
        {
            throw failure
        }
        guard allowsJSON5 || assumesTopLevelDictionary, let last = data.last, JSONNumbers.isOfWord(last) else {
            return data
        }
        return data + [UInt8(ascii: "\n")]
    }

    /// Returns the reason for a syntax error, with its position except in JSON5; `nil` if the data is valid JSON, or
    /// JSON5 if the decoder allows it.
    package func formatError(in data: Data) -> SerializationError? {
        let options: JSONResponseSerializer.Options = allowsJSON5 ? [.allowsFragments, .allowsJSON5] : .allowsFragments
        return JSONParser.failure(in: data, options: options).map(SerializationError.json)
    }

    /// Returns the offset of the value at a path, or of the last value on the path that exists; `nil` for JSON5.
    package func offset(of path: [any CodingKey], in data: Data) -> Int? {
        guard JSONParser.failure(in: data, options: .allowsFragments) == nil else { return nil }
        return JSONParser.offset(of: path.map { PathStep($0) }, in: data)
    }
}

extension PropertyListDecoder: ResponseDecoder, CheckingDecoder {
    /// Returns the property list, in UTF-8 if it is XML.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` for a property list that would exhaust the decoder's stack,
    ///   contains itself, or expands excessively.
    package func prepared(_ data: Data) throws(SerializationError) -> Data {
        try PropertyListGuard.checked(data)
    }

    /// Returns an error if the data is not a property list; otherwise `nil`.
    package func formatError(in data: Data) -> SerializationError? {
        do {
            _ = try decode(AnyPropertyList.self, from: data)
            return nil
        } catch {
            return .propertyList(.init(.propertyList(.malformed), excerpt: Excerpt.of(data)))
        }
    }

    /// Returns the offset of the last name of the path that is found in an XML property list; `nil` for the binary
    /// format.
    package func offset(of path: [any CodingKey], in data: Data) -> Int? {
        guard !data.starts(with: Array("bplist".utf8)) else { return nil }
        var offset = data.startIndex
        for name in path where name.intValue == nil {
            let element = Data("<key>\(name.stringValue)</key>".utf8)
            guard let range = data[offset...].firstRange(of: element) else { break }
            offset = range.upperBound
        }
        return data.distance(from: data.startIndex, to: offset)
    }
}

/// A property list whose content is ignored.
private struct AnyPropertyList: Decodable {
    init(from decoder: any Decoder) {}
}
