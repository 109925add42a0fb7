// SPDX-License-Identifier: MIT

package import AsyncNetworkingXML
import Foundation
import FoundationXML

/// Everything that a program may do with a document that has been inspected.
package enum XMLExercise {
    /// The result of using a document.
    package struct Outcome {
        /// Whether the document is well-formed.
        package var isWellFormed = false
        /// Whether its tree has an element.
        package var hasRoot = false
    }

    /// Parses a document with all features of Foundation's parsers, and reads the result.
    ///
    /// - Parameter options: A number that determines the options of the parsers.
    package static func run(_ content: XMLContent, options: Int) -> Outcome {
        var outcome = Outcome()
        let listener = XMLListener()
        outcome.isWellFormed = (try? content.parse(with: listener)) != nil
        let parser = content.makeParser()
        parser.shouldProcessNamespaces = options & 1 != 0
        parser.shouldReportNamespacePrefixes = options & 2 != 0
        parser.delegate = listener
        _ = parser.parse()
        let document = try? content.makeDocument(options: Self.options[options % Self.options.count])
        outcome.hasRoot = document?.rootElement() != nil
        if let document { visit(document) }
        return outcome
    }

    private static let options: [XMLNode.Options] = [
        [], .nodePreserveAll, .nodePreserveWhitespace, [.documentXInclude, .documentValidate], .documentTidyXML,
    ]

    /// Reads the properties of a node. Three are omitted because Foundation crashes on them in any document: the prefix
    /// of a node without one, the URI of a node that is not an element, and the path of a document type.
    private static func visit(_ node: XMLNode) {
        _ = (node.name, node.stringValue, node.kind)
        if let element = node as? XMLElement {
            _ = (element.localName, element.uri, element.xPath)
            for attribute in (element.attributes ?? []) + (element.namespaces ?? []) { visit(attribute) }
        }
        for child in node.children ?? [] { visit(child) }
        if let document = node as? XMLDocument {
            _ = (document.xmlString, document.canonicalXMLStringPreservingComments(true))
            _ = (document.uri, document.prefix, document.localName, document.characterEncoding, document.dtd)
            _ = try? document.nodes(forXPath: "//*[text()]/@* | //x:a | //namespace::*")
        }
    }
}

/// A delegate that reads everything the parser reports.
private final class XMLListener: NSObject, XMLParserDelegate {
    private var seen = 0

    private func take(_ texts: String?...) {
        for text in texts { seen &+= text?.utf8.count ?? 0 }
    }

    func parser(
        _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        take(elementName, namespaceURI, qualifiedName)
        for (name, value) in attributes { take(name, value) }
    }

    func parser(
        _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName: String?
    ) {
        take(elementName, namespaceURI, qualifiedName)
    }

    func parser(_ parser: XMLParser, didStartMappingPrefix prefix: String, toURI namespaceURI: String) {
        take(prefix, namespaceURI)
    }

    func parser(_ parser: XMLParser, didEndMappingPrefix prefix: String) {
        take(prefix)
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        take(string)
    }

    func parser(_ parser: XMLParser, foundIgnorableWhitespace whitespaceString: String) {
        take(whitespaceString)
    }

    func parser(_ parser: XMLParser, foundProcessingInstructionWithTarget target: String, data: String?) {
        take(target, data)
    }

    func parser(_ parser: XMLParser, foundComment comment: String) {
        take(comment)
    }

    func parser(_ parser: XMLParser, foundCDATA CDATABlock: Data) {
        take(String(decoding: CDATABlock, as: UTF8.self))
    }

    func parser(_ parser: XMLParser, foundElementDeclarationWithName elementName: String, model: String) {
        take(elementName, model)
    }

    func parser(
        _ parser: XMLParser, foundNotationDeclarationWithName name: String, publicID: String?, systemID: String?
    ) {
        take(name, publicID, systemID)
    }

    func parser(_ parser: XMLParser, resolveExternalEntityName name: String, systemID: String?) -> Data? {
        take(name, systemID)
        return seen % 2 == 0 ? Data("text".utf8) : nil
    }

    func parser(_ parser: XMLParser, parseErrorOccurred parseError: any Error) {
        take("\(parseError)")
    }
}
