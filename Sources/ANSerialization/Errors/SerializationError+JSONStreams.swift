// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension SerializationError {
    /// An invalid text of JSON lines or of a JSON text sequence.
    public struct JSONStreamFailure: Sendable {
        /// The number of the line, or of the text of a sequence, counted from 1 including blank ones; for bytes that do
        /// not follow a record separator, that of the text before them, or 0.
        public var number: Int
        /// The bytes of the text, without its line ending; at most the first 120 if it is too long.
        public var bytes: Data
        /// The reason for the failure.
        package var reason: Reason

        /// The error of a text that is not valid JSON, or does not match the requested type; `nil` for a text that is
        /// too long, was cut off, or does not follow a record separator.
        public var underlying: SerializationError? {
            if case .invalid(let error) = reason { error } else { nil }
        }

        /// The reason why a text of a stream cannot be read.
        package enum Reason: Sendable {
            /// The text is not valid JSON, or does not match the requested type.
            case invalid(SerializationError)
            /// The text is longer than the limit in bytes.
            case tooLong(limit: Int)
            /// The text of a sequence was cut off (RFC 7464 §2.4).
            case truncated
            /// The bytes of a sequence do not follow a record separator (RFC 7464 §2.1).
            case unseparated
        }
    }
}

extension SerializationError.JSONStreamFailure: CustomStringConvertible {
    /// A sentence with the number of the text, the reason, and the beginning of the text.
    public var description: String {
        switch reason {
        case .invalid(let error): "Line or text \(number) of the stream: \(error)"
        case .tooLong(let limit):
            "Line or text \(number) of the stream is longer than \(limit) bytes: “\(Excerpt.of(bytes))”; raise the limit."
        case .truncated: "Text \(number) of the sequence was cut off: “\(Excerpt.of(bytes))”."
        case .unseparated:
            "Bytes after text \(number) of the sequence do not follow a record separator: “\(Excerpt.of(bytes))”."
        }
    }
}
