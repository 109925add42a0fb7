// SPDX-License-Identifier: MIT

/// An error of a standard stream.
enum OutputError: Error, CustomStringConvertible {
    /// The reader of the output has closed it, as `head` does when it has read enough.
    case readerGone
    /// The body or message contains bytes that could control a terminal.
    case binary
    /// An error of the operating system, with its description.
    case system(String)

    var description: String {
        switch self {
        case .readerGone: "The reader of the output has closed it."
        case .binary: "Binary data is not printed on a terminal; save it with -o FILE, or print it with -o -."
        case .system(let reason): "The output cannot be written: \(reason)."
        }
    }
}
