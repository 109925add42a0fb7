// SPDX-License-Identifier: MIT

import Foundation
import Testing

/// The tables of calls in README.md and the article "Everyday calls".
@Suite struct CallTablesTests {
    private static let article = "Sources/AsyncNetworking/Documentation.docc/EverydayCalls.md"
    private static let lines = Set(
        (SourceTree.text(of: "Examples/Samples/EverydayCalls.swift") ?? "").split(separator: "\n")
            .map { $0.trimmingCharacters(in: .whitespaces) })

    @Test func `each call in README is a line of a compiled example`() throws {
        let text = try #require(SourceTree.text(of: "README.md"))
        let section = try #require(text.firstMatch(of: #/\#\# Everyday calls\n((?s).*?)\n\#\# /#)).1
        let calls = section.matches(of: /\| `(.+)` \|/).map { String($0.1) }
        #expect(calls.count >= 7)
        for call in calls { #expect(Self.lines.contains(call), "\(call)") }
    }

    @Test func `each call of this library in the article is compiled, and none is the longest of its table`() throws {
        let text = try #require(SourceTree.text(of: Self.article))
        let tables = text.components(separatedBy: "\n### ").dropFirst()
        #expect(tables.count >= 12)
        for table in tables {
            let calls = table.matches(of: /\| ([\w-]+) \| `(.+)` \|/).map { (library: $0.1, call: String($0.2)) }
            let own = try #require(calls.first { $0.library == "AsyncNetworking" }).call
            for statement in own.components(separatedBy: "; ") {
                #expect(Self.lines.contains(statement), "\(statement)")
            }
            let longest = calls.filter { $0.library != "AsyncNetworking" }.map(\.call.count).max() ?? 0
            #expect(own.count < longest, "\(own)")
        }
    }
}
