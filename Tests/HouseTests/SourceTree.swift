// SPDX-License-Identifier: MIT

import Foundation

/// The Swift files of the package.
enum SourceTree {
    /// The directory of the package. This file is in its directory Tests/HouseTests.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The names of the modules: the directories in Sources.
    static let modules: [String] = children(of: "Sources")

    /// All Swift files in Sources.
    static let sources: [SourceFile] = files(in: "Sources").filter { $0.hasSuffix(".swift") }.map(SourceFile.init)

    /// Returns the text of a file, or `nil` if it cannot be read.
    static func text(of path: String) -> String? {
        try? String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// Returns the paths of all files in a directory, relative to the package, without build products.
    static func files(in directory: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: root.appending(path: directory).path())
        return (names?.compactMap { $0 as? String } ?? [])
            .filter { !$0.contains(".build") }
            .map { "\(directory)/\($0)" }
            .filter { path in
                let attributes = try? FileManager.default.attributesOfItem(atPath: root.appending(path: path).path())
                return attributes?[.type] as? FileAttributeType == .typeRegular
            }
            .sorted()
    }

    private static func children(of directory: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: root.appending(path: directory).path())
        return (names ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }
}

/// A Swift file with its lines and its code.
struct SourceFile: CustomStringConvertible, Sendable {
    /// The path, relative to the package.
    let path: String
    /// The lines of the file.
    let lines: [String]
    /// The lines without comments and string literals, at the same indices as in `lines`.
    let code: [String]

    init(path: String) {
        self.init(path: path, text: SourceTree.text(of: path) ?? "")
    }

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        code = Self.withoutCommentsAndStrings(lines)
    }

    /// The name of the module: the directory in Sources.
    var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

    var description: String { path }

    /// The imported modules with their line numbers.
    var imports: [(module: String, line: Int)] {
        code.enumerated().compactMap { index, line in
            let words = line.split(whereSeparator: \.isWhitespace)
            guard let place = words.firstIndex(of: "import"), place + 1 < words.count,
                words[..<place].allSatisfy({ Self.importPrefixes.contains($0) || $0.hasPrefix("@") })
            else { return nil }
            // `import struct Module.Name`
            let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "let", "var", "typealias"]
            let name = kinds.contains(words[place + 1]) ? words.last : words[place + 1]
            return name.map { (String($0.prefix { $0 != "." }), index + 1) }
        }
    }

    /// Returns the occurrences of words in the code, as `path:line: text`.
    ///
    /// A word that begins or ends with a letter does not match within a longer name.
    func places(of words: Set<String>) -> [String] {
        code.indices.filter { index in
            // The first condition is the faster one.
            words.contains { code[index].contains($0) && Self.hasWord($0, in: code[index]) }
        }
        .map { "\(path):\($0 + 1): \(lines[$0].trimmingCharacters(in: .whitespaces))" }
    }

    private static func hasWord(_ word: String, in line: String) -> Bool {
        func isLetter(_ byte: UInt8?) -> Bool {
            byte.map { UInt8(ascii: "_") == $0 || Character(Unicode.Scalar($0)).isLetter } ?? false
        }
        let (line, word) = (Array(line.utf8), Array(word.utf8))
        guard !word.isEmpty, line.count >= word.count else { return false }
        return (0...(line.count - word.count)).contains { start in
            let end = start + word.count
            guard line[start] == word[0], line[start..<end].elementsEqual(word) else { return false }
            let isInName =
                isLetter(word.first) && start > 0 && isLetter(line[start - 1])
                || isLetter(word.last) && end < line.count && isLetter(line[end])
            return !isInName
        }
    }

    private static let importPrefixes: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]

    /// Removes comments and string literals. The library has no block comments.
    private static func withoutCommentsAndStrings(_ lines: [String]) -> [String] {
        var openLiteral: Literal?
        return lines.map { line in
            let bytes = Array(line.utf8)
            var code: [UInt8] = []
            var index = 0
            while index < bytes.count {
                if let literal = openLiteral {
                    if bytes[index...].starts(with: literal.end) {
                        index += literal.end.count
                        openLiteral = nil
                    } else {
                        index += literal.isRaw || bytes[index] != UInt8(ascii: "\\") ? 1 : 2
                    }
                } else if let literal = Literal(at: bytes[index...]) {
                    index += literal.end.count
                    openLiteral = literal
                } else if bytes[index...].starts(with: "//".utf8) {
                    break
                } else {
                    code.append(bytes[index])
                    index += 1
                }
            }
            if openLiteral?.isMultiline == false { openLiteral = nil }
            return String(decoding: code, as: UTF8.self)
        }
    }

    /// The start of a string literal: any number of #, then one or three quotes.
    private struct Literal {
        let end: [UInt8]
        let isRaw: Bool
        let isMultiline: Bool

        init?(at bytes: ArraySlice<UInt8>) {
            guard let first = bytes.first, first == UInt8(ascii: "#") || first == UInt8(ascii: "\"") else { return nil }
            let marks = Array(bytes.prefix { $0 == UInt8(ascii: "#") })
            let quotes = bytes.dropFirst(marks.count).prefix(3)
            guard quotes.first == UInt8(ascii: "\"") else { return nil }
            isRaw = !marks.isEmpty
            isMultiline = quotes.elementsEqual("\"\"\"".utf8)
            end = [UInt8](repeating: UInt8(ascii: "\""), count: isMultiline ? 3 : 1) + marks
        }
    }
}
