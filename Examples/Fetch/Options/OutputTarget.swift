// SPDX-License-Identifier: MIT

/// The destination of a response body.
package enum OutputTarget: Equatable, Sendable {
    /// Standard output. Binary bodies are printed on a terminal only if `takesBinary`.
    case standardOutput(takesBinary: Bool)
    /// The file at this path.
    case file(String)

    /// Whether the body is saved to a file.
    var isFile: Bool { if case .file = self { true } else { false } }
}
