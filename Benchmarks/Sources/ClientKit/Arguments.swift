// SPDX-License-Identifier: MIT

/// Command line options of the form `--name value` and flags of the form `--name`.
package struct Arguments: Sendable {
    private var values: [String: String] = [:]

    package init(_ commandLine: [String], flags: Set<String> = []) throws {
        var rest = commandLine.dropFirst()
        while let name = rest.popFirst() {
            guard name.hasPrefix("--") else { throw Failure("\(name) is not an option") }
            guard let value = flags.contains(name) ? "" : rest.popFirst() else {
                throw Failure("\(name) needs a value")
            }
            values[name] = value
        }
    }

    package subscript(name: String) -> String? { values[name] }

    package func integer(_ name: String) throws -> Int? {
        guard let text = values[name] else { return nil }
        guard let value = Int(text) else { throw Failure("\(name) needs a number, not \(text)") }
        return value
    }
}
