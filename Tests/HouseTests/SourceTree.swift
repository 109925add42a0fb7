// SPDX-License-Identifier: MIT

import Foundation

/// The package's folder and the Swift files in it.
enum SourceTree {
    /// The package's folder: this file is at Tests/HouseTests/ in it.
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The modules: the folders in Sources.
    static let modules: [String] = children(of: "Sources")

    /// All Swift files in Sources.
    static let sources: [SourceFile] = files(in: "Sources").filter { $0.hasSuffix(".swift") }.map(SourceFile.init)

    /// The text of a file; nil where there is none.
    static func text(of path: String) -> String? {
        try? String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The paths of all files in a folder, relative to the package, without what was built.
    static func files(in folder: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: root.appending(path: folder).path())
        return (names?.compactMap { $0 as? String } ?? [])
            .filter { !$0.contains(".build") }
            .map { "\(folder)/\($0)" }
            .filter { path in
                let attributes = try? FileManager.default.attributesOfItem(atPath: root.appending(path: path).path())
                return attributes?[.type] as? FileAttributeType == .typeRegular
            }
            .sorted()
    }

    private static func children(of folder: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path())
        return (names ?? []).filter { !$0.hasPrefix(".") }.sorted()
    }
}

/// One Swift file: its lines, and what of them is code.
struct SourceFile: CustomStringConvertible, Sendable {
    /// The path from the package's folder.
    let path: String
    /// The lines as they stand in the file.
    let lines: [String]
    /// The lines without comments and without what stands in string literals; as many as `lines`.
    let code: [String]

    init(path: String) {
        self.init(path: path, text: SourceTree.text(of: path) ?? "")
    }

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        code = Self.withoutCommentsAndStrings(lines)
    }

    /// The module: the folder in Sources.
    var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }

    var description: String { path }

    /// The imports, each with its line's number.
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

    /// The places in the code that match, as `path:line: text`.
    func places(of pattern: Regex<Substring>) -> [String] {
        code.indices.filter { code[$0].contains(pattern) }
            .map { "\(path):\($0 + 1): \(lines[$0].trimmingCharacters(in: .whitespaces))" }
    }

    private static let importPrefixes: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]

    private static func withoutCommentsAndStrings(_ lines: [String]) -> [String] {
        // The library has no block comments.
        var delimiter: String?
        return lines.map { line in
            var rest = Substring(line)
            var code = ""
            while !rest.isEmpty {
                if let end = delimiter {
                    guard let range = rest.firstRange(of: end) else { return code }
                    rest = rest[range.upperBound...]
                    delimiter = nil
                } else if rest.hasPrefix("//") {
                    return code
                } else if let opening = rest.prefixMatch(of: /(#*)"""/) {
                    delimiter = "\"\"\"" + opening.1
                    rest = rest[opening.range.upperBound...]
                } else if let literal = rest.prefixMatch(of: /#".*?"#|"(\\.|[^"\\])*"/) {
                    code += "\"\""
                    rest = rest[literal.range.upperBound...]
                } else {
                    code.append(rest.removeFirst())
                }
            }
            return code
        }
    }
}
