// SPDX-License-Identifier: MIT

import FoundationEssentials
import TestSupport
import Testing

/// An implementation in Python, by its standard library.
struct PythonOracle {
    /// The definition of a function `answer` that returns the text for bytes. An exception becomes the text `error`.
    let script: String

    init(_ script: String) { self.script = script }

    /// Returns the answers to questions.
    func answers(to questions: [[UInt8]], sourceLocation: SourceLocation = #_sourceLocation) async throws -> [String] {
        let path = "/tmp/an-oracle-\(UInt64.random(in: 0 ... .max))"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(questions.map { Data($0).base64EncodedString() + "\n" }.joined().utf8).write(to: URL(filePath: path))
        var command = Command(
            "python3", "-c",
            script + """

                import base64, sys
                for line in sys.stdin:
                    try: print(answer(base64.b64decode(line)))
                    except Exception: print("error")
                """)
        command.input = .file(path, flags: 0)
        let outcome = try await command.run()
        let answers = String(decoding: outcome.output, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false
        ).dropLast().map(String.init)
        try #require(
            answers.count == questions.count, "\(String(decoding: outcome.errors, as: UTF8.self))",
            sourceLocation: sourceLocation)
        return answers
    }

    /// Expects that each answer is the one that is given.
    func expect(
        _ expected: [String], for questions: [[UInt8]], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let answers = try await answers(to: questions, sourceLocation: sourceLocation)
        for (index, answer) in answers.enumerated() where answer != expected[index] {
            let question = String(decoding: questions[index], as: UTF8.self).debugDescription
            Issue.record("\(question): \(expected[index]), not \(answer)", sourceLocation: sourceLocation)
        }
    }

    /// Returns bytes as Python's `hex()` does.
    static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
