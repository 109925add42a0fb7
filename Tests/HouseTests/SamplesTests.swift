// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// What `scripts/samples` does not check: the differences in the article on migration, and the files that articles name.
@Suite struct SamplesTests {
    private static let articles = SourceTree.files(in: "Sources/AsyncNetworking/Documentation.docc")
        .filter { $0.hasSuffix(".md") }

    /// The article shows the first state of a class, and the differences to the next ones: groups of lines with their
    /// context, separated by `@@`.
    @Test func `the differences in the article on migration lead from each compiled state to the next`() throws {
        let source = try #require(SourceTree.text(of: "Examples/Samples/MigrationStates.swift"))
        let states = source.matches(of: /(?s)\/\/ state\.\d\n(.*?)\/\/ state\.end/).map { match in
            match.1.split(separator: "\n", omittingEmptySubsequences: false)
                .filter { !$0.contains("// snippet.") && $0.contains(/^ {4}\S|^ {5}|^$/) }.map { $0.dropFirst(4) }
        }
        let article = try #require(
            SourceTree.text(of: "Sources/AsyncNetworking/Documentation.docc/MigratingFromAFNetworking.md"))
        let differences = article.matches(of: /(?s)```diff\n(.*?)\n```/).map(\.1)
        #expect(states.count == 4 && differences.count == 3)
        for (index, difference) in differences.enumerated() {
            var (result, rest) = ([Substring](), states[index][...])
            for group in difference.split(separator: "@@\n") {
                let lines = group.split(separator: "\n", omittingEmptySubsequences: false)
                    .dropLast(group.hasSuffix("\n") ? 1 : 0)
                let old = lines.filter { !$0.hasPrefix("+") }.map { $0.dropFirst() }
                let start = try #require(rest.indices.first { rest[$0...].starts(with: old) }, "\(group)")
                result += rest[..<start] + lines.filter { !$0.hasPrefix("-") }.map { $0.dropFirst() }
                rest = rest[(start + old.count)...]
            }
            #expect(result + rest == states[index + 1])
        }
    }

    /// The public types of the modules that articles describe, except those of AFNetworking, which its article names often.
    private static let types = Set(
        SourceTree.sources.filter { $0.module != "AFNetworking" }.flatMap { file in
            file.lines.filter { $0.hasPrefix("public ") }.compactMap { line -> String? in
                let words = line.split { !$0.isLetter && !$0.isNumber }
                let kinds: Set<Substring> = ["struct", "enum", "class", "actor", "protocol"]
                return words.firstIndex(where: kinds.contains).flatMap {
                    words.indices.contains($0 + 1) ? String(words[$0 + 1]) : nil
                }
            }
        })

    /// No version is tagged yet.
    @Test func `the samples of manifests require the package by its branch`() throws {
        let lines = try (["README.md"] + Self.articles).flatMap { path in
            try #require(SourceTree.text(of: path)).split(separator: "\n").filter { $0.contains(".package(url:") }
        }
        #expect(lines.count > 4)
        #expect(lines.filter { !$0.contains(#"branch: "main""#) } == [])
    }

    @Test(arguments: articles) func `types that an article names are links`(article: String) throws {
        #expect(Self.types.count > 100)
        var isCode = false
        for line in try #require(SourceTree.text(of: article)).split(separator: "\n") {
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode else { continue }
            // Between single backticks; links are between double ones.
            let words = line.split(separator: "``", omittingEmptySubsequences: false).enumerated()
                .filter { $0.offset.isMultiple(of: 2) }
                .flatMap { $0.element.split(separator: "`", omittingEmptySubsequences: false).enumerated() }
                .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
            #expect(words.filter(Self.types.contains) == [], "\(line)")
        }
    }

    @Test(arguments: articles + ["README.md", "CONTRIBUTING.md"])
    func `each source file that an article names exists`(article: String) throws {
        let text = try #require(SourceTree.text(of: article))
        for match in text.matches(of: /`(Sources\/[^`]+)`/) {
            #expect(SourceTree.text(of: String(match.1)) != nil, "\(match.1) does not exist")
        }
    }

    @Test func `the article on errors has a row for each case of the session's error`() throws {
        let source = try #require(SourceTree.text(of: "Sources/AsyncNetworking/SessionError.swift"))
        let declaration = try #require(source.firstMatch(of: /(?s)enum SessionError.*?\n {4}public enum/)).0
        let article = try #require(SourceTree.text(of: "Sources/AsyncNetworking/Documentation.docc/Errors.md"))
        let rows = article.matches(of: /\n\| ``SessionError\/(\w+)/).map { String($0.1) }
        #expect(Set(rows) == Set(declaration.matches(of: /\n {4}case (\w+)/).map { String($0.1) }))
        #expect(rows.count > 10)
    }

    @Test func `each function that the life of a request names is in its file, and there are few`() throws {
        let article = "Sources/AsyncNetworking/Documentation.docc/TheLifeOfARequest.md"
        let text = try #require(SourceTree.text(of: article))
        var numbers: [Int] = []
        for row in text.split(separator: "\n") where row.hasPrefix("|") {
            guard let match = row.firstMatch(of: /\| `(\w+)` \| `(Sources\/[^`]+)` \|/) else { continue }
            let file = try #require(SourceTree.text(of: String(match.2)), "\(match.2)")
            #expect(file.contains("func \(match.1)(") || file.contains("func \(match.1)<"), "\(row)")
            if let number = Int(row.dropFirst(2).prefix { $0 != " " }) { numbers.append(number) }
        }
        #expect(numbers == Array(1...28))
    }
}
