// SPDX-License-Identifier: MIT

/// Where a response's body goes.
package enum OutputTarget: Equatable, Sendable {
    /// To standard output; binary bodies to a terminal only when told so.
    case standardOutput(takesBinary: Bool)
    /// To a file.
    case file(String)
}
