// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import Foundation
public import FoundationXML

/// An XML document that was received: its bytes, and parsers for them.
///
/// `XMLParser` and `XMLDocument` must stay with one task at a time, and a response's value goes from task to task. So the
/// value has the bytes, and each call makes a parser or a tree of the caller's own.
///
/// The document was inspected: its characters are those of XML, in valid UTF-8; it declares no entities and no default attributes, its elements are nested at most 256 deep
/// and have at most 1,000 attributes each. Files and URLs that it names are not read.
public struct XMLContent: Sendable {
    /// The document in UTF-8. A processing instruction without data has a blank behind its target, as in `<?a ?>`.
    public let data: Data
    private let inspection: XMLInspection

    /// Inspects a document.
    ///
    /// - Parameters:
    ///   - data: The document, in any encoding that it or `charset` names.
    ///   - charset: The encoding by the `Content-Type`, which goes before the one in the XML declaration (RFC 7303 §3).
    /// - Throws: `SerializationError.xml` for what is refused, `SerializationError.text` for bytes that are invalid in their
    ///   encoding.
    public init(_ data: Data, charset: String? = nil) throws(SerializationError) {
        inspection = try XMLInspection(try XMLText.utf8(data, charset: charset))
        self.data = inspection.document
    }

    /// A parser that has not started.
    ///
    /// It calls its delegate while `parse()` runs. Beware that `parse()` returns true for a document that ends too early:
    /// look at `parserError` too, or use ``parse(with:)``.
    public func makeParser() -> sending XMLParser {
        let parser = XMLParser(data: data)
        parser.shouldResolveExternalEntities = false
        return parser
    }

    /// Parses the document to its end; the delegate is called meanwhile.
    ///
    /// - Throws: `SerializationError.xml` for a document that is not well-formed, and when the delegate stops the parser.
    public func parse(with delegate: any XMLParserDelegate) throws(SerializationError) {
        let parser = makeParser()
        parser.delegate = delegate
        let isParsed = withExtendedLifetime(delegate) { parser.parse() }
        let code = (parser.parserError as NSError?)?.code
        guard !isParsed || code != nil || !inspection.hasElement else { return }
        throw problem(code: code ?? 0, line: parser.lineNumber, column: parser.columnNumber)
    }

    /// Builds the tree of the document.
    ///
    /// - Parameter options: Those that load files or validate are left out.
    /// - Throws: `SerializationError.xml` for a document that is not well-formed.
    public func makeDocument(options: XMLNode.Options = []) throws(SerializationError) -> sending XMLDocument {
        // The tree of a document that is not well-formed is what could be made of it, without an error.
        try checkWellFormed()
        let safe = options.subtracting(Self.unsafeOptions).union(.nodeLoadExternalEntitiesNever)
        do {
            return try XMLDocument(data: data, options: safe)
        } catch {
            throw problem(code: (error as NSError).code, line: 0, column: 0)
        }
    }

    /// Parses the document to its end for its errors only.
    ///
    /// - Throws: `SerializationError.xml`.
    public func checkWellFormed() throws(SerializationError) {
        try parse(with: Deaf())
    }

    private static let unsafeOptions: XMLNode.Options = [
        .documentXInclude, .documentValidate, .nodeLoadExternalEntitiesAlways,
        .nodeLoadExternalEntitiesSameOriginOnly,
    ]

    private func problem(code: Int, line: Int, column: Int) -> SerializationError {
        let reason: SerializationError.XMLProblem.Reason =
            switch code {
            case _ where inspection.isCutOff || !inspection.hasElement: .unexpectedEnd
            // libxml2 has one number for content after the document and for a document without its end.
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

    /// A delegate that does not listen.
    private final class Deaf: NSObject, XMLParserDelegate {}
}
