// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation

/// A look at XML before libxml2 has one: linear in its length, and without recursion.
///
/// libxml2 takes entities from files where it is asked to build a tree, expands them and default attributes as often as they
/// are used, follows nesting on the stack, and compares each attribute of an element with all others. This refuses what would
/// make it do so; all else that is wrong is left to libxml2 to find.
struct XMLInspection: Sendable {
    static let maximumDepth = 256
    static let maximumAttributes = 1_000

    /// Whether there is an element.
    private(set) var hasElement = false
    /// Whether the document ends within an element.
    var isOpen: Bool { depth > 0 || isCutOff }
    /// Whether the document ends within a tag, a comment or the like.
    private(set) var isCutOff = false

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    /// Inspects a document of UTF-8.
    ///
    /// - Throws: `SerializationError.xml` for what is refused.
    init(_ data: Data) throws(SerializationError) {
        bytes = Array(data)
        while let start = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = start
            if has("<!--") {
                skip(past: "-->", from: start + 4)
            } else if has("<![CDATA[") {
                skip(past: "]]>", from: start + 9)
            } else if has("<?") {
                skip(past: "?>", from: start + 2)
            } else if has("<!") {
                try inspectDeclaration()
            } else if has("</") {
                depth -= 1
                skip(past: ">", from: start + 2)
            } else {
                try inspectTag()
            }
        }
    }

    // MARK: Tags

    private mutating func inspectTag() throws(SerializationError) {
        let start = position
        var attributes = 0
        position += 1
        while position < bytes.count, bytes[position] != UInt8(ascii: ">") {
            switch bytes[position] {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                skipLiteral()
                continue
            case UInt8(ascii: "="): attributes += 1
            default: break
            }
            position += 1
        }
        guard attributes <= Self.maximumAttributes else {
            throw problem(.tooManyAttributes(limit: Self.maximumAttributes), at: start)
        }
        guard position < bytes.count else {
            isCutOff = true
            return
        }
        hasElement = true
        if bytes[position - 1] != UInt8(ascii: "/") { depth += 1 }
        position += 1
        guard depth <= Self.maximumDepth else { throw problem(.tooDeep(limit: Self.maximumDepth), at: start) }
    }

    // MARK: The document type

    /// `<!DOCTYPE … [ … ]>`: its internal subset may have no declarations but those of elements and notations.
    private mutating func inspectDeclaration() throws(SerializationError) {
        position += 2
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                skipLiteral()
            case UInt8(ascii: "["):
                position += 1
                try inspectSubset()
            case UInt8(ascii: ">"):
                position += 1
                return
            default:
                position += 1
            }
        }
        isCutOff = true
    }

    private mutating func inspectSubset() throws(SerializationError) {
        while position < bytes.count {
            if has("<!--") {
                skip(past: "-->", from: position + 4)
            } else if has("<?") {
                skip(past: "?>", from: position + 2)
            } else if has("<!") {
                guard has("<!ELEMENT") || has("<!NOTATION") else {
                    let kind = bytes[(position + 2)...].prefix(20).prefix {
                        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0
                    }
                    throw problem(.declaration(String(decoding: kind, as: UTF8.self)), at: position)
                }
                skipDeclaration()
            } else if bytes[position] == UInt8(ascii: "]") {
                position += 1
                return
            } else {
                position += 1
            }
        }
        isCutOff = true
    }

    private mutating func skipDeclaration() {
        while position < bytes.count, bytes[position] != UInt8(ascii: ">") {
            switch bytes[position] {
            case UInt8(ascii: "\""), UInt8(ascii: "'"): skipLiteral()
            default: position += 1
            }
        }
    }

    // MARK: Bytes

    private func has(_ mark: String) -> Bool {
        bytes[position...].starts(with: mark.utf8)
    }

    /// Goes past the quotes that begin here, and what stands between them.
    private mutating func skipLiteral() {
        let quote = bytes[position]
        guard let end = bytes[(position + 1)...].firstIndex(of: quote) else {
            position = bytes.count
            return
        }
        position = end + 1
    }

    /// Goes past the next such mark; to the end when there is none.
    private mutating func skip(past mark: String, from start: Int) {
        let mark = Array(mark.utf8)
        var next = min(start, bytes.count)
        while let candidate = bytes[next...].firstIndex(of: mark[0]) {
            if bytes[candidate...].starts(with: mark) {
                position = candidate + mark.count
                return
            }
            next = candidate + 1
        }
        position = bytes.count
        isCutOff = true
    }

    private func problem(
        _ reason: SerializationError.XMLProblem.Reason, at offset: Int
    ) -> SerializationError {
        let line = bytes[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
        return .xml(.init(reason: reason, line: line, excerpt: Excerpt.around(offset, in: bytes)))
    }
}
