// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import Foundation
public import FoundationXML

/// A received XML document: its bytes, and parsers for them.
///
/// An ``XMLParserResponseSerializer`` and an ``XMLDocumentResponseSerializer`` return it. ``init(_:charset:)`` creates
/// it from bytes that were received in another way.
///
/// `XMLParser` and `XMLDocument` are not `Sendable`, but the value of a response is sent between tasks. This type
/// therefore stores the bytes, and each call creates a parser or a tree that belongs to the caller.
///
/// The document has been inspected: it is valid UTF-8 with characters permitted in XML, declares no entities and no
/// default attributes, and its elements are nested at most 256 levels deep and have at most 1,000 attributes each.
/// External files and URLs are not read.
public struct XMLContent: Sendable {
    /// The document in UTF-8. Its bytes may differ from those received, even if those were UTF-8.
    ///
    /// A byte order mark is removed, and so is the name of another encoding in the XML declaration. A declaration
    /// without an encoding is inserted if the first bytes could make the parser assume another one, or if the
    /// document's own is malformed. A processing instruction without data gets a space after its target, as in
    /// `<?a ?>`.
    public let data: Data
    private let inspection: XMLInspection

    /// Creates the content from a document after inspecting it.
    ///
    /// Wrongly nested elements, and truncation other than within a character, are not detected here, but by
    /// ``parse(with:)``, ``makeDocument(options:)`` and ``checkWellFormed()``.
    ///
    /// - Parameters:
    ///   - data: The document, in any encoding declared by it or by `charset`, or else in UTF-8. An empty one is
    ///     accepted, but not well-formed.
    ///   - charset: The encoding declared by the `Content-Type`; `nil`, the default, if there is none. It overrides the
    ///     XML declaration, and is overridden by a byte order mark (RFC 7303 §3).
    /// - Throws: `SerializationError.xml` for malformed markup, invalid UTF-8, and documents that are rejected;
    ///   `SerializationError.text` for an unknown encoding, or bytes that are invalid in an encoding other than UTF-8.
    public init(_ data: Data, charset: String? = nil) throws(SerializationError) {
        inspection = try XMLInspection(try XMLText.utf8(data, charset: charset))
        self.data = inspection.document
    }

    /// Returns a new parser that has not started and has no delegate.
    ///
    /// It calls its delegate during `parse()`, in the calling thread, and reads no external entities. Note that
    /// `parse()` returns `true` for an incomplete document: check `parserError`, too, or use ``parse(with:)``, which
    /// also rejects a document without an element.
    public func makeParser() -> sending XMLParser {
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        return parser
    }

    /// Parses the complete document in the calling thread, and calls a delegate for its events before returning. It can
    /// be called any number of times. The parser has the default settings, with which namespaces are not processed; use
    /// ``makeParser()`` for others.
    ///
    /// - Parameter delegate: Receives the events, also those before an error. It is retained until this function
    ///   returns.
    /// - Throws: `SerializationError.xml` if the document has no element, is incomplete or not well-formed, or the
    ///   delegate aborts parsing.
    public func parse(with delegate: any XMLParserDelegate) throws(SerializationError) {
        let parser = makeParser()
        parser.delegate = delegate
        let isParsed = withExtendedLifetime(delegate) { parser.parse() }
        let code = (parser.parserError as NSError?)?.code
        guard !isParsed || code != nil || !inspection.hasElement else { return }
        throw failure(code: code ?? 0, line: parser.lineNumber, column: parser.columnNumber)
    }

    /// Returns a new tree of the document, which belongs to the caller. The document is parsed twice: to check whether
    /// it is well-formed, and to build the tree.
    ///
    /// - Parameter options: The options for the tree, none by default; those that load files or validate are ignored.
    /// - Throws: `SerializationError.xml` if the document has no element, is incomplete or not well-formed.
    public func makeDocument(options: XMLNode.Options = []) throws(SerializationError) -> sending XMLDocument {
        // XMLDocument creates a partial tree from a malformed document, without an error.
        try checkWellFormed()
        let safe = options.subtracting(Self.unsafeOptions).union(.nodeLoadExternalEntitiesNever)
        do {
            return try XMLDocument(data: data, options: safe)
        } catch {
            throw failure(code: (error as NSError).code, line: 0, column: 0)
        }
    }

    /// Parses the complete document, in the calling thread, to check whether it is well-formed; it is not validated
    /// against a DTD or schema.
    ///
    /// - Throws: `SerializationError.xml` if the document has no element, is incomplete or not well-formed.
    public func checkWellFormed() throws(SerializationError) {
        try parse(with: Deaf())
    }

    private static let unsafeOptions: XMLNode.Options = [
        .documentXInclude, .documentValidate, .nodeLoadExternalEntitiesAlways,
        .nodeLoadExternalEntitiesSameOriginOnly,
    ]

    private func failure(code: Int, line: Int, column: Int) -> SerializationError {
        let reason: SerializationError.XMLFailure.Reason =
            switch code {
            case _ where inspection.isCutOff || !inspection.hasElement: .unexpectedEnd
            // libxml2 uses the same code for content after the document and for an incomplete document.
            case 5 where inspection.isOpen: .unexpectedEnd
            case XMLParser.ErrorCode.delegateAbortedParseError.rawValue, 111: .aborted
            default: .malformed(code: code)
            }
        return .xml(
            .init(
                reason: reason, line: line > 0 ? line : nil,
                excerpt: Excerpt.around(offset(line: line, column: column), in: data)))
    }

    private func offset(line: Int, column: Int) -> Int {
        var start = data.startIndex
        for _ in 1..<max(line, 1) {
            guard let end = data[start...].firstIndex(of: UInt8(ascii: "\n")) else { break }
            start = end + 1
        }
        return data.distance(from: data.startIndex, to: start) + max(column - 1, 0)
    }

    /// A delegate that ignores all events.
    private final class Deaf: NSObject, XMLParserDelegate {}
}
