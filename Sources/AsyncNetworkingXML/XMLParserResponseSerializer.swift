// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import Foundation
import FoundationXML

/// A serializer that returns XML for event-based parsing, available as `.xmlParser`.
///
/// ```swift
/// let feed = try await api.get("feed", as: .xmlParser).value
/// try feed.parse(with: delegate)
/// ```
///
/// The document is inspected, but not checked to be well-formed before it is parsed. An empty body is accepted, even
/// within `.optional(.xmlParser)`, which is therefore never `nil`, but parsing it fails.
public struct XMLParserResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with the media types of XML,
    /// `ResponseValidation.xml`.
    public var validation: ResponseValidation

    /// Creates a serializer.
    ///
    /// - Parameter validation: The statuses and media types that are accepted; by default 200 to 299 with
    ///   `application/xml`, `text/xml` and types with the suffix `+xml`.
    public init(validation: ResponseValidation = .xml) {
        self.validation = validation
    }

    /// Returns the document after inspecting, but not parsing it.
    ///
    /// - Parameters:
    ///   - head: The head of the response, whose `Content-Type` may declare the encoding; its status and media type are
    ///     not checked here.
    ///   - body: The document, which may be empty.
    /// - Throws: `SerializationError.xml` for malformed markup, invalid UTF-8, and a document that is rejected, such as
    ///   one that declares entities; `SerializationError.text` for an unknown encoding, or bytes that are invalid in an
    ///   encoding other than UTF-8.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> XMLContent {
        try XMLContent(body, charset: head.charset)
    }
}

/// A serializer that returns well-formed XML for building a tree, available as `.xmlDocument`.
///
/// ```swift
/// let document = try await api.get("feed", as: .xmlDocument).value.makeDocument()
/// print(try document.nodes(forXPath: "/rss/channel/title"))
/// ```
///
/// An empty body fails with `SerializationError.emptyBody`. With `.optional(.xmlDocument)`, it results in `nil` if
/// ``emptyResponses`` permits it, as by default.
public struct XMLDocumentResponseSerializer: AdjustableResponseSerializer, EmptyAcceptingSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with the media types of XML,
    /// `ResponseValidation.xml`.
    public var validation: ResponseValidation
    /// The statuses with which `.optional(.xmlDocument)` accepts an empty body and results in `nil`; any status by
    /// default. Without `.optional`, an empty body fails with any status. A single space never counts as empty.
    public var emptyResponses: EmptyResponseRules

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with `application/xml`,
    ///     `text/xml` and types with the suffix `+xml`.
    ///   - emptyResponses: The statuses with which `.optional(.xmlDocument)` accepts an empty body and results in
    ///     `nil`; any status by default. Without `.optional`, an empty body fails with any status. A single space never
    ///     counts as empty.
    public init(validation: ResponseValidation = .xml, emptyResponses: EmptyResponseRules = .anyStatus) {
        self.validation = validation
        self.emptyResponses = emptyResponses
    }

    /// Returns the document after inspecting it and checking that it is well-formed.
    ///
    /// - Parameters:
    ///   - head: The head of the response, whose `Content-Type` may declare the encoding; its status and media type are
    ///     not checked here.
    ///   - body: The document.
    /// - Throws: `SerializationError.xml` for a document that is rejected or not well-formed, or invalid UTF-8;
    ///   `SerializationError.text` for an unknown encoding, or bytes that are invalid in an encoding other than UTF-8;
    ///   `SerializationError.emptyBody` for an empty body, with any status.
    public func serialize(_ head: ResponseHead, _ body: Data) throws(SerializationError) -> XMLContent {
        guard !body.isEmpty else { throw .emptyBody(status: head.status.code, wanted: "XML document") }
        let content = try XMLContent(body, charset: head.charset)
        try content.checkWellFormed()
        return content
    }

    /// Returns whether the body is empty and the status permits that.
    package func isEmpty(_ head: ResponseHead, _ body: Data) -> Bool {
        body.isEmpty && emptyResponses.statuses?.contains(head.status.code) ?? true
    }
}

extension ResponseSerializer where Self == XMLParserResponseSerializer {
    /// A serializer that returns XML for event-based parsing, not checked to be well-formed, and accepts the statuses
    /// 200 to 299 with `application/xml`, `text/xml` and types with the suffix `+xml`. An empty body is accepted with
    /// any media type, but parsing it fails.
    public static var xmlParser: XMLParserResponseSerializer { XMLParserResponseSerializer() }
}

extension ResponseSerializer where Self == XMLDocumentResponseSerializer {
    /// A serializer that returns well-formed XML for building a tree, and accepts the statuses 200 to 299 with
    /// `application/xml`, `text/xml` and types with the suffix `+xml`. An empty body fails with
    /// `SerializationError.emptyBody`; with `.optional(.xmlDocument)`, it results in `nil`.
    public static var xmlDocument: XMLDocumentResponseSerializer { XMLDocumentResponseSerializer() }
}

/// A document without some functions of Foundation's that crash for some documents.
final class XMLTree: XMLDocument {
    private var hasCharacterEncoding = false

    /// Creates the tree of a document in UTF-8.
    convenience init(of data: Data, options: XMLNode.Options) throws {
        try self.init(data: data, options: options)
        let declaration = data.prefix { $0 != UInt8(ascii: ">") }
        hasCharacterEncoding =
            declaration.starts(with: "<?xml".utf8) && declaration.firstRange(of: Data("encoding".utf8)) != nil
    }

    override var characterEncoding: String? {
        get { hasCharacterEncoding ? super.characterEncoding : nil }
        set {
            hasCharacterEncoding = newValue != nil
            super.characterEncoding = newValue
        }
    }

    override var dtd: XMLDTD? {
        get { children?.contains { $0.kind == .DTDKind } == true ? super.dtd : nil }
        set { super.dtd = newValue }
    }

    override var localName: String? { nil }
    override var prefix: String? { nil }

    override var uri: String? {
        get { nil }
        set {}
    }

    /// Returns the nodes that an XPath selects, beginning at the outermost element.
    ///
    /// - Throws: `SerializationError.xml` for a prefix that the outermost element does not declare, or one whose
    ///   declaration Foundation does not find.
    override func nodes(forXPath xpath: String) throws -> [XMLNode] {
        guard let root = rootElement() else { return [] }
        let known = root.prefixesInXPath
        if let prefix = Self.prefixes(of: xpath).first(where: { !known.contains($0) }) {
            throw SerializationError.xml(
                .init(.xml(.xPath(prefix)), excerpt: Excerpt.around(0, in: Array(xpath.utf8))))
        }
        return try root.nodes(forXPath: xpath)
    }

    /// Returns the names that are followed by a single colon outside of literals, and the name of the axis `namespace`,
    /// whose nodes are not nodes of Foundation's.
    private static func prefixes(of xpath: String) -> [String] {
        let code = xpath.replacing(/"[^"]*"|'[^']*'/, with: "''")
        return code.matches(of: /([\w.\-]+):(?!:)/).map { String($0.1) }
            + (code.contains(/namespace\s*::/) ? ["namespace"] : [])
    }
}

extension XMLElement {
    /// The prefixes that Foundation registers for an XPath: that of the element, those that it declares after it, and
    /// `xml`.
    fileprivate var prefixesInXPath: Set<String> {
        let declared = (namespaces ?? []).map { $0.name ?? "" }
        let own = (name ?? "").split(at: ":", maxSplits: 1).dropLast().first.map(String.init) ?? ""
        return Set(declared.drop { $0 != own }).union(["xml"])
    }
}
