// SPDX-License-Identifier: MIT

// The problems with reading a response.

extension SerializationError.Failure {
    /// Creates the failure of a charset that is unknown.
    package static func unknownCharset(_ charset: String) -> Self { Self(.unknownCharset, charset: charset) }

    /// Creates the failure of a body that is invalid in a charset.
    package static func invalidBytes(charset: String) -> Self { Self(.invalidBytes, charset: charset) }

    /// Creates the failure of a response whose media type is not multipart.
    package static func notMultipart(contentType: String?) -> Self {
        Self("The response", " is not multipart: its media type is \(contentType.map { Excerpt.of($0) } ?? "missing").")
    }

    /// Creates the failure of a `Content-Type` without a boundary, or with an invalid one.
    package static func responseBoundary(_ boundary: String?) -> Self {
        Self(
            "The multipart response",
            " has \(boundary.map { "the invalid boundary “\(Excerpt.of($0))”" } ?? "no boundary")."
        )
    }

    /// The failure of a body that ended before the closing delimiter.
    package static let unexpectedEnd = Self(
        "The multipart response", " ended before its closing delimiter; it may be truncated.")

    /// Creates the failure of a line of a part's header, whose beginning is given, that is not a header field.
    package static func partHeader(_ line: String) -> Self {
        Self("A part of the multipart response", " has a malformed header line: “\(Excerpt.of(line))”.")
    }

    /// Creates the failure of exceeding a limit of ``MultipartLimits``.
    package static func tooLarge(_ exceeded: Limit, limit: Int) -> Self {
        switch exceeded {
        case .header:
            Self(
                "A part's header in the multipart response",
                " has more than \(limit) bytes; raise the limit if that is "
                    + "expected.")
        case .fields:
            Self("A part's header in the multipart response", " has more than \(limit) fields.")
        case .parts:
            Self("The multipart response", " has more than \(limit) parts; raise the limit if that is expected.")
        case .part:
            Self(
                "A part of the multipart response",
                " has more than \(limit) bytes; raise the limit if that is expected.")
        case .preamble:
            Self("The multipart response", " has no part within its first \(limit) bytes; check its boundary.")
        }
    }

    /// The failure of two tasks that read the same body concurrently, or of reading a part after the next one was
    /// requested.
    package static let outOfTurn = Self(
        "The parts of a multipart response", " must be read in order, by one task: read a part before the next one.")

    /// A limit of ``MultipartLimits``.
    package enum Limit: Hashable, Sendable {
        /// The size of a part's header in bytes.
        case header
        /// The number of fields of a part's header, which cannot be raised.
        case fields
        /// The number of parts.
        case parts
        /// The size of a part's content in bytes.
        case part
        /// The number of bytes before the first part.
        case preamble
    }
}
