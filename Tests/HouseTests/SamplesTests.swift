// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// The samples in README.md and the documentation are lines of compiled examples.
@Suite struct SamplesTests {
    private static let articles =
        ["README.md"]
        + SourceTree.files(in: "Sources/AsyncNetworking/Documentation.docc").filter { $0.hasSuffix(".md") }

    /// The lines of the compiled examples without surrounding whitespace.
    private static let examples = (SourceTree.files(in: "Examples/Snippets") + SourceTree.files(in: "Examples/Start"))
        .map { lines(SourceTree.text(of: $0) ?? "") }

    @Test(arguments: articles)
    func `each sample is part of a compiled example`(article: String) throws {
        let text = try #require(SourceTree.text(of: article))
        for sample in Self.samples(in: text) {
            let isCompiled = Self.examples.contains { Self.contains($0, sample) }
            #expect(isCompiled, "\(sample.joined(separator: "\n"))")
        }
    }

    @Test(arguments: articles)
    func `each source file that an article names exists`(article: String) throws {
        let text = try #require(SourceTree.text(of: article))
        for match in text.matches(of: /`(Sources\/[^`]+)`/) {
            #expect(SourceTree.text(of: String(match.1)) != nil, "\(match.1) does not exist")
        }
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
