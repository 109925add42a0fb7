// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation

/// An inspection of XML that precedes Foundation's parser; it takes linear time and does not recurse.
///
/// Foundation crashes on processing instructions without data, on notations, and on names that are not UTF-8. It instructs libxml2 to continue after errors, which can then interpret the content of
/// malformed markup as other markup. The inspection therefore requires markup to follow XML 1.0, so that each construct
/// ends where libxml2 sees its end.
///
/// When it builds a tree, libxml2 reads entities from files. It expands entities and default attributes as often as
/// they are used, recurses for nested elements, and compares each attribute of an element with all others. Documents
/// that would trigger excessive work are rejected. Other errors, such as elements closed in the wrong order, are left
/// to libxml2.
struct XMLInspection: Sendable {
    static let maximumDepth = 256
    static let maximumAttributes = 1_000
    /// The maximum number of namespaces that are declared by the open elements; libxml2 compares the prefix of each name
    /// with all of them.
    static let maximumNamespaces = 1_000

    /// The document with a space inserted into each processing instruction without data: libxml2 then reports empty
    /// data instead of none, on which Foundation crashes.
    var document: Data { document(without: nil) }

    /// The document for a tree: ``document`` without the internal subset of its type. Foundation crashes on the paths of
    /// the subset's nodes, and its declarations have no effect, because trees are not validated.
    var treeDocument: Data { document(without: subset) }

    private func document(without removed: Range<Int>?) -> Data {
        var edits = bareInstructions.map { (range: $0..<$0, text: " ") }
        if let removed {
            edits.removeAll { removed.contains($0.range.lowerBound) }
            edits.insert(
                (removed, ""), at: edits.firstIndex { $0.range.lowerBound > removed.lowerBound } ?? edits.count)
        }
        var document = Data(capacity: lexer.bytes.count + edits.count)
        var start = 0
        for edit in edits {
            document += lexer.bytes[start..<edit.range.lowerBound]
            document += edit.text.utf8
            start = edit.range.upperBound
        }
        return document + lexer.bytes[start...]
    }

    /// Whether the document contains an element.
    private(set) var hasElement = false
    /// Whether the document has an element, and does not end within one.
    var isComplete: Bool { hasElement && !isOpen }
    /// Whether the document ends within an element.
    var isOpen: Bool { depth > 0 || isCutOff }
    /// Whether the document ends within a tag, a comment or other markup.
    private(set) var isCutOff = false

    private var lexer: XMLLexer
    private var depth = 0
    /// The number of namespaces that each open element declares.
    private var namespaces: [Int] = []
    /// The number of namespaces that all open elements declare.
    private var namespacesInScope = 0
    private var hasDocumentType = false
    /// The internal subset of the document type, with its brackets.
    private var subset: Range<Int>?
    /// The offsets at which the targets of processing instructions without data end.
    private var bareInstructions: [Int] = []

    /// Inspects a document.
    ///
    /// - Throws: `SerializationError.xml` if the document is malformed or rejected.
    init(_ data: Data) throws(SerializationError) {
        lexer = XMLLexer(Array(data))
        do throws(XMLLexer.Stop) {
            guard data.count <= XMLLexer.maximumSize else {
                throw .refusal(.tooLarge(limit: XMLLexer.maximumSize), offset: 0)
            }
            try lexer.checkCharacters()
            while lexer.skipToMarkup() { try inspectMarkup() }
        } catch {
            switch error {
            case .end: isCutOff = true
            case .refusal(let reason, let offset): throw lexer.failure(reason, at: offset)
            }
        }
        guard lexer.bytes.count + bareInstructions.count <= XMLLexer.maximumSize else {
            throw lexer.failure(.tooLarge(limit: XMLLexer.maximumSize), at: 0)
        }
    }

    private mutating func inspectMarkup() throws(XMLLexer.Stop) {
        if lexer.take("<!--") {
            try lexer.skipComment()
        } else if depth > 0, lexer.take("<![CDATA[") {
            try lexer.skip(past: "]]>")
        } else if lexer.take("<?") {
            try inspectInstruction()
        } else if !hasElement, !hasDocumentType, lexer.take("<!DOCTYPE") {
            hasDocumentType = true
            try inspectDocumentType()
        } else if lexer.take("</") {
            depth -= 1
            namespacesInScope -= namespaces.popLast() ?? 0
            try lexer.skipName()
            lexer.skipBlanks()
            try lexer.expect(">")
        } else {
            try inspectTag()
        }
    }

    // MARK: Processing instructions

    private mutating func inspectInstruction() throws(XMLLexer.Stop) {
        let start = lexer.position
        try lexer.skipName()
        let end = lexer.position
        let target = lexer.bytes[start..<end]
        // Only a declaration at the start of the document may have this name (XML 1.0 §2.6).
        guard
            !(target.count == 3 && target.map { $0 | 0x20 } == Array("xml".utf8))
                || start == 2 && target.elementsEqual("xml".utf8)
        else { throw .refusal(.malformed(code: XMLLexer.Code.reservedName.rawValue), offset: start) }
        if lexer.take("?>") {
            bareInstructions.append(end)
        } else {
            try lexer.expectBlanks()
            try lexer.skip(past: "?>")
        }
    }

    // MARK: Tags

    private mutating func inspectTag() throws(XMLLexer.Stop) {
        let start = lexer.position
        try lexer.expect("<")
        try lexer.skipName()
        guard depth < Self.maximumDepth else { throw .refusal(.tooDeep(limit: Self.maximumDepth), offset: start) }
        var (attributes, declarations) = (0, 0)
        while true {
            let hasBlanks = lexer.skipBlanks()
            if lexer.take("/>") { break }
            if lexer.take(">") {
                depth += 1
                namespaces.append(declarations)
                namespacesInScope += declarations
                break
            }
            guard hasBlanks else { throw lexer.unexpected(.spaceRequired) }
            let isDeclaration = lexer.bytes[lexer.position...].starts(with: "xmlns".utf8)
            try lexer.skipName()
            lexer.skipBlanks()
            try lexer.expect("=")
            lexer.skipBlanks()
            let value = lexer.position
            try lexer.skipLiteral { $0 != UInt8(ascii: "<") }
            // Foundation copies the name of an element's namespace: a long one counts as several.
            if isDeclaration { declarations += 1 + (lexer.position - value) / 256 }
            attributes += 1
            guard attributes <= Self.maximumAttributes, namespacesInScope + declarations <= Self.maximumNamespaces
            else {
                throw .refusal(.tooManyAttributes(limit: Self.maximumAttributes), offset: start)
            }
        }
        hasElement = true
    }

    // MARK: The document type

    /// Inspects `<!DOCTYPE … [ … ]>`, whose internal subset may declare only elements.
    private mutating func inspectDocumentType() throws(XMLLexer.Stop) {
        try lexer.expectBlanks()
        try lexer.skipName()
        if lexer.skipBlanks() { try inspectIdentifiers() }
        lexer.skipBlanks()
        let start = lexer.position
        if lexer.take("[") {
            try inspectSubset()
            subset = start..<lexer.position
            lexer.skipBlanks()
        }
        try lexer.expect(">")
    }

    /// Inspects `SYSTEM` with one literal, or `PUBLIC` with two.
    private mutating func inspectIdentifiers() throws(XMLLexer.Stop) {
        let isPublic = lexer.take("PUBLIC")
        guard isPublic || lexer.take("SYSTEM") else { return }
        if isPublic {
            try lexer.expectBlanks()
            try lexer.skipLiteral(upTo: XMLLexer.maximumName, while: XMLLexer.isPublicIdentifier)
        }
        try lexer.expectBlanks()
        try lexer.skipLiteral(upTo: XMLLexer.maximumName) { _ in true }
    }

    private mutating func inspectSubset() throws(XMLLexer.Stop) {
        while true {
            lexer.skipBlanks()
            let start = lexer.position
            if lexer.take("]") { return }
            if lexer.take("<!--") {
                try lexer.skipComment()
            } else if lexer.take("<?") {
                try inspectInstruction()
            } else if lexer.take("<!ELEMENT") {
                try lexer.skip(past: ">") { !"<\"'%".utf8.contains($0) }
            } else if lexer.take("<!") {
                throw .refusal(.declaration(lexer.capitals), offset: start)
            } else {
                throw lexer.unexpected(.internalSubset)
            }
        }
    }
}
