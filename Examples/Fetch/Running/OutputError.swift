// SPDX-License-Identifier: MIT

/// Why a standard stream could not be used.
enum OutputError: Error, CustomStringConvertible {
    /// Whoever read the output has gone, as `head` does when it has seen enough.
    case readerGone
    /// The body has bytes that would upset a terminal.
    case binary
    /// The system refused, for this reason.
    case system(String)

    var description: String {
        switch self {
        case .readerGone: "Nobody reads the output any more."
        case .binary: "The body is binary and the output a terminal; save it with -o FILE, or print it with -o -."
        case .system(let reason): "The output cannot be written: \(reason)."
        }
    }
}
