// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// The samples in README.md are lines of compiled examples, and those in articles are slices of `Examples/Snippets`, which
/// begin with `// snippet.NAME` and end with `// snippet.end`.
@Suite struct SamplesTests {
    private static let articles = SourceTree.files(in: "Sources/AsyncNetworking/Documentation.docc")
        .filter { $0.hasSuffix(".md") }

    /// The lines of the compiled examples without surrounding whitespace.
    private static let examples = (SourceTree.files(in: "Examples/Snippets") + SourceTree.files(in: "Examples/Start"))
        .map { lines(SourceTree.text(of: $0) ?? "").filter { !$0.hasPrefix("// snippet.") } }

    @Test func `each sample in the README is part of a compiled example`() throws {
        let text = try #require(SourceTree.text(of: "README.md"))
        for sample in Self.samples(in: text) {
            let isCompiled = Self.examples.contains { Self.contains($0, sample) }
            #expect(isCompiled, "\(sample.joined(separator: "\n"))")
        }
    }

    @Test(arguments: articles)
    func `an article has no code besides slices of compiled examples`(article: String) throws {
        let text = try #require(SourceTree.text(of: article))
        #expect(Self.samples(in: text) == [])
        for slice in Self.slices(shownIn: text) {
            #expect(Self.slices.contains(slice), "Examples/Snippets has no slice \(slice)")
        }
    }

    @Test func `each slice is shown in an article`() {
        let shown = Self.articles.flatMap { Self.slices(shownIn: SourceTree.text(of: $0) ?? "") }
        #expect(Self.slices.count > 100)
        #expect(Set(Self.slices).subtracting(shown) == [])
        #expect(Self.slices.count == Set(Self.slices).count)
    }

    /// The article shows the first state of a class, and the differences to the next ones: groups of lines with their
    /// context, separated by `@@`.
    @Test func `the differences in the article on migration lead from each compiled state to the next`() throws {
        let source = try #require(SourceTree.text(of: "Examples/Snippets/MigrationStates.swift"))
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

    @Test(arguments: articles + ["README.md", "CONTRIBUTING.md"])
    func `each source file that an article names exists`(article: String) throws {
        let text = try #require(SourceTree.text(of: article))
        for match in text.matches(of: /`(Sources\/[^`]+)`/) {
            #expect(SourceTree.text(of: String(match.1)) != nil, "\(match.1) does not exist")
        }
    }

    /// The slices in `Examples/Snippets`, in the form `Retries/overview`.
    private static let slices = SourceTree.files(in: "Examples/Snippets").flatMap { path in
        let file = path.split(separator: "/").last.map { $0.replacing(".swift", with: "") } ?? ""
        let names = (SourceTree.text(of: path) ?? "").matches(of: /(?m)^ *\/\/ snippet\.(\S+)$/).map(\.1)
        return names.filter { $0 != "end" }.map { "\(file)/\($0)" }
    }

    private static func slices(shownIn text: String) -> [String] {
        text.matches(of: /(?m)^@Snippet\(path: "AsyncNetworking\/Snippets\/(\w+)", slice: "(\S+)"\)$/)
            .map { "\($0.1)/\($0.2)" }
    }

    /// Returns the Swift code blocks in Markdown, except excerpts of a package manifest.
    private static func samples(in text: String) -> [[String]] {
        text.matches(of: /```swift\n((?s).*?)```/)
            .map { lines(String($0.1)) }
            .filter { sample in !sample.allSatisfy { $0.hasPrefix(".package(") || $0.hasPrefix(".product(") } }
    }

    private static func lines(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    private static func contains(_ lines: [String], _ sample: [String]) -> Bool {
        guard let first = sample.first else { return true }
        return lines.indices.contains { lines[$0] == first && lines[$0...].starts(with: sample) }
    }
}
