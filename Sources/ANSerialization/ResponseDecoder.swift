// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// Reads documents of one format: `JSONDecoder`, `PropertyListDecoder`, or one of another package.
///
/// Most decoders need no more than the conformance:
///
/// ```swift
/// extension MessagePackDecoder: ResponseDecoder {}
/// ```
///
/// The other members make errors say more.
public protocol ResponseDecoder: Sendable {
    /// Decodes a value of this type from a whole document.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value

    /// The document as ``decode(_:from:)`` gets it; by default as it is.
    ///
    /// - Throws: ``SerializationError`` for what the decoder must not see, such as nesting that it cannot bear.
    func prepared(_ data: Data) throws(SerializationError) -> Data

    /// What is wrong with data that could not be decoded, when it is no document of the format at all; by default nil.
    func problem(in data: Data) -> SerializationError?

    /// The offset of the value at a coding path in the data; by default nil, for unknown.
    func offset(of path: [any CodingKey], in data: Data) -> Int?
}

extension ResponseDecoder {
    /// The data as it is.
    public func prepared(_ data: Data) throws(SerializationError) -> Data { data }

    /// Nil.
    public func problem(in data: Data) -> SerializationError? { nil }

    /// Nil.
    public func offset(of path: [any CodingKey], in data: Data) -> Int? { nil }
}

extension JSONDecoder: ResponseDecoder {
    /// Where and why the data is not JSON.
    public func problem(in data: Data) -> SerializationError? {
        JSONParser.problem(in: data, options: readingOptions).map(SerializationError.json)
    }

    /// The offset of the value, or of the last one that the path leads to.
    public func offset(of path: [any CodingKey], in data: Data) -> Int? {
        JSONParser.offset(of: path.map { PathStep($0) }, in: data, options: readingOptions)
    }

    private var readingOptions: JSONReadingOptions {
        allowsJSON5 ? [.allowsFragments, .allowsJSON5] : .allowsFragments
    }
}

extension PropertyListDecoder: ResponseDecoder {
    /// The property list, in UTF-8 when it is one of XML.
    ///
    /// - Throws: ``SerializationError/propertyList(_:)`` for nesting that would exhaust the decoder's stack, for objects that
    ///   contain themselves, and for few bytes that stand for very many values.
    public func prepared(_ data: Data) throws(SerializationError) -> Data {
        try PropertyListGuard.checked(data)
    }

    /// That the data is no property list.
    public func problem(in data: Data) -> SerializationError? {
        do {
            _ = try decode(AnyPropertyList.self, from: data)
            return nil
        } catch {
            return .propertyList(.init(reason: .malformed, excerpt: Excerpt.of(data)))
        }
    }

    /// The offset of the last name in the path, searched in the text of a property list of XML.
    public func offset(of path: [any CodingKey], in data: Data) -> Int? {
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

/// Any property list, of which nothing is kept.
private struct AnyPropertyList: Decodable {
    init(from decoder: any Decoder) {}
}
