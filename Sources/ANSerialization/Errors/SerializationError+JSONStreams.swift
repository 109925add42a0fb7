// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension SerializationError {
    /// A text of JSON lines or of a JSON text sequence (RFC 7464) that cannot be read: it is not valid JSON, does not
    /// match the requested type, is too long, was cut off, or does not follow a record separator.
    ///
    /// The ``description`` names the reason. The sequences that `ResponseBody.jsonLines(of:)` and `jsonSequence(of:)`
    /// return pass it to `onFailure`, or throw ``SerializationError/jsonStream(_:)`` if that is `nil`.
    public struct JSONStreamFailure: Sendable {
        /// The number of the line, or of the text of a sequence, counted from 1 including blank ones.
        ///
        /// For bytes that do not follow a record separator, it is that of the text before them, or 0 if there is none.
        public var number: Int
        /// The bytes of the text; at most the first 120 if it is too long.
        ///
        /// The line ending after a line or a complete text of a sequence is removed, as is a byte order mark before the
        /// first line. A text of a sequence that was cut off, and bytes that do not follow a record separator, keep
        /// their line feeds.
        public var bytes: Data
        /// The reason for the failure.
        package var reason: Reason

        /// The error of the decoder for a text that is not valid, usually ``SerializationError/json(_:)``, or does not
        /// match the requested type, ``SerializationError/decoding(_:)``; `nil` for a text that is too long, was cut
        /// off, or does not follow a record separator.
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
    /// A sentence with the ``number`` of the text, the reason, and an excerpt of the text.
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
