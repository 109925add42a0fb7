// SPDX-License-Identifier: MIT

import Foundation
import Testing

@Suite struct FileHygieneTests {
    private static let directories = ["Sources", "Tests", "Examples", "Benchmarks"]

    @Test(arguments: directories)
    func `every Swift file begins with its license`(directory: String) {
        let files = SourceTree.files(in: directory).filter { $0.hasSuffix(".swift") && !$0.hasSuffix("/Package.swift") }
        let bare = files.filter { SourceTree.text(of: $0)?.hasPrefix("// SPDX-License-Identifier: MIT\n") != true }
        #expect(bare == [])
    }

    @Test(arguments: directories)
    func `no path contains a space`(directory: String) {
        #expect(SourceTree.files(in: directory).filter { $0.contains(where: \.isWhitespace) } == [])
    }

    @Test(arguments: SourceTree.sources)
    func `there are no unfinished tasks in comments`(file: SourceFile) {
        let places = file.lines.indices.filter { file.lines[$0].contains("TODO") || file.lines[$0].contains("FIXME") }
        #expect(places.map { "\(file.path):\($0 + 1)" } == [])
    }

    @Test func `a file with exit tests runs them one after the other`() {
        let files = SourceTree.files(in: "Tests").filter { $0.hasSuffix(".swift") && !$0.contains("HouseTests") }
        let texts = files.compactMap { SourceTree.text(of: $0) }.filter {
            $0.contains("await #expect(processExitsWith")
        }
        #expect(texts.count > 10)
        #expect(texts.filter { !$0.contains("@Test(.exitTest") } == [])
    }

    @Test func `there are files to check`() {
        #expect(SourceTree.sources.count > 50)
        #expect(SourceTree.modules.contains("ANSystem"))
    }

    @Test func `every make target in the README exists`() throws {
        guard let readme = SourceTree.text(of: "README.md") else { return }
        let makefile = try #require(SourceTree.text(of: "Makefile"))
        let targets = Set(makefile.matches(of: /(?m)^([a-z][a-z-]*):/).map { String($0.1) })
        let named = Set(readme.matches(of: /\bmake ([a-z][a-z-]*)/).map { String($0.1) })
        #expect(targets.contains("test"))
        // Phrases such as "make sure" are not in code quotes.
        let quoted = Set(readme.matches(of: /(?m)(?:`|^\s*\$?\s*)make ([a-z][a-z-]*)/).map { String($0.1) })
        #expect(named.intersection(quoted).subtracting(targets) == [])
    }
}
