// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation
import FoundationXML

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
