// SPDX-License-Identifier: MIT

import ANSystem
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
/// The document has been inspected: it is valid UTF-8 with characters permitted in XML, has at most 10,000,000 bytes
/// (the limit of libxml2), declares no entities, notations and default attributes, and its elements are nested at most
/// 256 levels deep and have at most 1,000 attributes each; it has at most 50,000 different names. External files and URLs are not read.
///
/// A document is well-formed by XML 1.0, also if libxml2 warns about it: for example because it has version 1.1, a
/// prefix that is not declared, or a namespace that is not an absolute URI. A reference to an entity that only an
/// external subset could declare is left out of the text.
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
    ///   - charset: The encoding declared by the `Content-Type`; `nil`, the default, without one. It overrides the
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
        let isParsed = parser.parse(with: delegate)
        guard !isParsed || parser.errorCode != nil || !inspection.isComplete else { return }
        // A warning may have replaced an error, because the parser has only the last one.
        if isParsed, let code = parser.errorCode, ErrorRecorder.warnings.contains(code) { return try checkWellFormed() }
        throw failure(code: parser.errorCode, line: parser.lineNumber, column: parser.columnNumber)
    }

    /// Returns a new tree of the document, which belongs to the caller. The document is parsed twice: to check whether
    /// it is well-formed, and to build the tree. The tree does not contain the internal subset of a document type.
    ///
    /// Foundation crashes on an XPath with a prefix that the document does not declare. `nodes(forXPath:)` of the tree
    /// throws an error instead; that of an element still crashes. See <doc:Responses> for further properties that crash.
    ///
    /// - Parameter options: The options for the tree, none by default; those that load files or validate are ignored.
    /// - Throws: `SerializationError.xml` if the document has no element, is incomplete or not well-formed.
    public func makeDocument(options: XMLNode.Options = []) throws(SerializationError) -> sending XMLDocument {
        // XMLDocument creates a partial tree from a malformed document, without an error.
        try checkWellFormed()
        let safe = options.subtracting(Self.unsafeOptions).union(.nodeLoadExternalEntitiesNever)
        do {
            return try LibXML2.silently { try XMLTree(of: inspection.treeDocument, options: safe) }
        } catch {
            throw failure(code: (error as NSError).code, line: 0, column: 0)
        }
    }

    /// Parses the complete document, in the calling thread, to check whether it is well-formed; it is not validated
    /// against a DTD or schema.
    ///
    /// - Throws: `SerializationError.xml` if the document has no element, is incomplete or not well-formed.
    public func checkWellFormed() throws(SerializationError) {
        let parser = makeParser()
        let recorder = ErrorRecorder()
        let isParsed = parser.parse(with: recorder)
        guard !isParsed || recorder.code != nil || !inspection.isComplete else { return }
        throw failure(
            code: recorder.code ?? parser.errorCode, line: parser.lineNumber, column: parser.columnNumber)
    }

    private static let unsafeOptions: XMLNode.Options = [
        .documentXInclude, .documentValidate, .nodeLoadExternalEntitiesAlways,
        .nodeLoadExternalEntitiesSameOriginOnly,
    ]

    private func failure(code: Int?, line: Int, column: Int) -> SerializationError {
        let reason: SerializationError.Failure.XMLReason =
            switch code {
            case _ where inspection.isCutOff || !inspection.hasElement: .unexpectedEnd
            // libxml2 uses the same code for content after the document and for an incomplete document, and none for a
            // document of less than four bytes.
            case nil where inspection.isOpen, 5 where inspection.isOpen: .unexpectedEnd
            case XMLParser.ErrorCode.delegateAbortedParseError.rawValue, 111: .aborted
            default: .malformed(code: code ?? 0)
            }
        return .xml(
            .init(
                .xml(reason), line: line > 0 ? line : nil,
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
}

extension XMLParser {
    /// The code of the last error or warning; `nil` if there was none.
    fileprivate var errorCode: Int? { (parserError as NSError?)?.code }

    /// Parses with a delegate, which is retained meanwhile.
    fileprivate func parse(with delegate: any XMLParserDelegate) -> Bool {
        self.delegate = delegate
        return withExtendedLifetime(delegate) { parse() }
    }
}

/// A delegate that ignores all events but errors.
private final class ErrorRecorder: NSObject, XMLParserDelegate {
    /// The code of the last error that is not a warning.
    private(set) var code: Int?

    func parser(_ parser: XMLParser, parseErrorOccurred parseError: any Error) {
        let code = (parseError as NSError).code
        if !Self.warnings.contains(code) { self.code = code }
    }

    /// The codes of libxml2 (`xmlParserErrors`) for well-formed documents: undeclared entities that an external subset
    /// may declare, reserved targets, unknown versions and languages, namespaces that are not absolute URIs, other values
    /// of `xml:space`, and violations of the rules of namespaces, such as prefixes that are not declared.
    static let warnings: Set<Int> = [27, 64, 97, 98, 99, 100, 102, 200, 201, 202, 203, 204, 205]
}
