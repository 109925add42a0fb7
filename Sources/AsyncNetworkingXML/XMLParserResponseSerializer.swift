// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import Foundation

/// Gives XML to parse by events; written `.xmlParser`.
///
/// ```swift
/// let feed = try await api.get("feed", as: .xmlParser).value
/// try feed.parse(with: delegate)
/// ```
///
/// Whether the document is well-formed shows when it is parsed. An empty body is a value too, which cannot be parsed.
public struct XMLParserResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation

    /// Creates a serializer that takes XML's media types unless said otherwise.
    public init(validation: ResponseValidation = .xml) {
        self.validation = validation
    }

    /// Returns the document, which was inspected but not parsed.
    ///
    /// - Throws: `SerializationError.xml` for what is refused, such as declarations of entities.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> XMLContent {
        try XMLContent(body, charset: head.charset)
    }
}

/// Gives XML that is well-formed, for a tree; written `.xmlDocument`.
///
/// ```swift
/// let document = try await api.get("feed", as: .xmlDocument).value.makeDocument()
/// print(try document.nodes(forXPath: "/rss/channel/title"))
/// ```
///
/// An empty body fails with `SerializationError.emptyBody`, and is nil for `.optional(.xmlDocument)`.
public struct XMLDocumentResponseSerializer: AdjustableResponseSerializer {
    /// The responses that it takes.
    public var validation: ResponseValidation
    /// When the body may be missing.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer that takes XML's media types unless said otherwise.
    public init(validation: ResponseValidation = .xml, emptyResponses: EmptyResponseRules = .anyStatus) {
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the document, which was parsed once.
    ///
    /// - Throws: `SerializationError.xml` for what is refused or not well-formed, or `SerializationError.emptyBody`.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> XMLContent {
        guard !body.isEmpty else { throw .emptyBody(status: head.status.code, wanted: "XML document") }
        let content = try XMLContent(body, charset: head.charset)
        try content.checkWellFormed()
        return content
    }

    /// Whether the body is missing and may be.
    public func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        body.isEmpty && emptyResponses.statuses?.contains(head.status.code) ?? true
    }
}

extension ResponseSerializer where Self == XMLParserResponseSerializer {
    /// The body as XML to parse by events.
    public static var xmlParser: XMLParserResponseSerializer { XMLParserResponseSerializer() }
}

extension ResponseSerializer where Self == XMLDocumentResponseSerializer {
    /// The body as well-formed XML, for a tree.
    public static var xmlDocument: XMLDocumentResponseSerializer { XMLDocumentResponseSerializer() }
}
