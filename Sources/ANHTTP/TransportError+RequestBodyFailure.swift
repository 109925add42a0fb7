// SPDX-License-Identifier: MIT

extension TransportError.RequestBodyFailure: Equatable {
    /// Returns whether two failures have the same case and associated values. The errors of sources are equal if their
    /// types and descriptions are.
    public static func == (first: Self, second: Self) -> Bool {
        switch (first, second) {
        case (.tooShort(let declared, let produced), .tooShort(let otherDeclared, let otherProduced)):
            declared == otherDeclared && produced == otherProduced
        case (.tooLong(let declared), .tooLong(let otherDeclared)): declared == otherDeclared
        case (.notReplayable, .notReplayable): true
        case (.file(let path, let reason), .file(let otherPath, let otherReason)):
            path == otherPath && reason == otherReason
        case (.source(let error), .source(let other)):
            type(of: error) == type(of: other) && "\(error)" == "\(other)"
        case (.tooShort, _), (.tooLong, _), (.notReplayable, _), (.file, _), (.source, _): false
        }
    }
}
