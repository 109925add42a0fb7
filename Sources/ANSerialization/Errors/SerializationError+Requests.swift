// SPDX-License-Identifier: MIT

import ANHTTP
import FoundationEssentials

// The problems with creating a request.

extension SerializationError.Failure {
    /// Creates the failure of a string that is not a valid URL (RFC 3986), for the given reason.
    package static func malformed(_ string: String, reason: String) -> Self {
        Self("“\(Excerpt.ofURL(string))” is not a URL: \(reason).")
    }

    /// Creates the failure of a URL whose scheme is neither http nor https.
    package static func scheme(_ scheme: String, url: String) -> Self {
        var failure = Self(
            "The scheme “\(Excerpt.of(scheme))” of “\(Excerpt.ofURL(url))” is neither http nor https. If this is a "
                + "relative path with a colon in its first segment, write “./” in front.")
        failure.scheme = scheme
        return failure
    }

    /// Creates the failure of a URL without a host.
    package static func noHost(_ url: String) -> Self {
        Self("“\(Excerpt.ofURL(url))” has no host; check the slashes after the scheme.")
    }

    /// Creates the failure of a relative string without a base URL.
    package static func noBase(_ string: String) -> Self {
        Self(
            "“\(Excerpt.ofURL(string))” is relative, but there is no base URL; give one, or an absolute http or https URL."
        )
    }

    /// Creates the failure of a number that is NaN or infinite, which queries and JSON cannot represent.
    package static func notFinite(path: String) -> Self {
        Self(
            "The parameter “\(Excerpt.of(path))” is NaN or infinite, which cannot be sent; check how it was computed.",
            path: path)
    }

    /// Creates the failure of a date that is outside of the years 1 to 9999, or not finite.
    package static func dateOutOfRange(path: String) -> Self {
        Self(
            "The date “\(Excerpt.of(path))” lies outside the years 1 to 9999; send it as a number or a string.",
            path: path)
    }

    /// Creates the failure of values that are nested more deeply than the limit.
    package static func tooDeep(limit: Int) -> Self {
        Self("The parameters are nested more than \(limit) levels deep; check the value for a cycle.")
    }

    /// The failure of an outermost value that is not a dictionary, which queries and forms require.
    package static let notADictionary = Self(
        "Queries and forms consist of names and values, so their parameters must be a dictionary; send any other "
            + "value as JSON or as a body.")

    /// Creates the failure of already encoded text, which JSON and property lists do not support.
    package static func rawText(path: String) -> Self {
        Self(
            "The parameter “\(Excerpt.of(path))” is raw text, which only queries and forms support; use a string.",
            path: path)
    }

    /// Creates the failure of a query with `#`, which would end it, or characters that are invalid in a URL.
    package static func rawQuery(_ text: String) -> Self {
        Self(
            "“\(Excerpt.of(URL.redactedQuery(text)))” cannot be the query of a URL; percent-encode spaces, “#” and "
                + "non-ASCII characters.")
    }

    /// Creates the failure of a value that a property list does not support, for the given reason.
    package static func notInPropertyList(path: String, reason: String) -> Self {
        Self("The parameter “\(Excerpt.of(path))” cannot be in a property list: \(reason).", path: path)
    }

    /// Creates the failure of a value that parameters do not support, for the given reason.
    package static func unsupported(path: String, reason: String) -> Self {
        Self("The parameter “\(Excerpt.of(path))” cannot be sent: \(Excerpt.of(reason, limit: 300))", path: path)
    }

    /// Creates the failure of the text of a parameter that cannot be represented in the selected encoding.
    package static func textEncoding(path: String) -> Self {
        Self(
            "The text of “\(Excerpt.of(path))” has characters that the selected encoding does not support; use UTF-8.",
            path: path)
    }

    /// The failure of a request that would have two bodies, one from parameters and another one.
    package static let bodyPresent = Self(
        "The request would have two bodies, from parameters and another one; append fields to a form by append(_:), and encode other parameters into the query."
    )

    /// Creates the failure of an `Encodable` value to encode itself.
    package static func encodable(path: String, reason: String, underlying: any Error) -> Self {
        var failure = Self("A value at “\(Excerpt.of(path))” could not be encoded: \(reason)", path: path)
        failure.underlying = underlying
        return failure
    }

    /// The failure of a form without parts, which has no valid body (RFC 2046 §5.1).
    package static let noParts = Self(
        "The multipart form has no parts; append one, or send the request without a body.")

    /// Creates the failure of a boundary that does not consist of 1 to 70 of the characters permitted by RFC 2046
    /// §5.1.1.
    package static func boundary(_ boundary: String) -> Self {
        Self("“\(Excerpt.of(boundary))” cannot be a multipart boundary; use 1 to 70 letters, digits or '()+_,-./:=?.")
    }

    /// Creates the failure of a part's header field whose name is not a token (RFC 9110 §5.1).
    package static func headerName(_ name: String) -> Self {
        Self("“\(Excerpt.of(name))” cannot be the name of a header field; use letters, digits and hyphens.")
    }

    /// Creates the failure of a part's header field whose value contains CR, LF, NUL or another control character.
    package static func headerValue(name: String) -> Self {
        Self(
            "The value of the part's header “\(Excerpt.of(name))” contains a line break or another control character; "
                + "check its source.")
    }

    /// Creates the failure of a file that cannot be opened or read, for the given reason.
    package static func file(path: String, reason: String) -> Self {
        Self("The file \(path) cannot be sent: \(reason).")
    }

    /// Creates the failure of a file that became shorter after it was appended.
    package static func fileShrank(path: String, declared: Int64, read: Int64) -> Self {
        Self(
            "The file \(path) had \(declared) bytes when it was appended, but only \(read) could be read; do not change "
                + "it while it is being sent.")
    }

    /// Creates the failure of a sequence that yielded fewer or more bytes than declared; `produced` is the number of
    /// bytes until this was detected.
    package static func partLength(part: String, declared: Int64, produced: Int64) -> Self {
        Self(
            "The \(subject(part)) was declared with \(declared) bytes, but produced \(produced); declare the "
                + "true length, or no length.")
    }

    /// Creates the failure of a part that can be read only once and would have to be read again, for a redirect or a
    /// retry.
    package static func partReadTwice(part: String) -> Self {
        Self(
            "The \(subject(part)) can be read only once, but the request had to be sent again; use bytes "
                + "or a file, or declare the sequence replayable if it is.")
    }

    /// Returns the words for a part; a body that is not a form has one without a name.
    private static func subject(_ part: String) -> String { part.isEmpty ? "body" : "part “\(Excerpt.of(part))”" }

    /// Creates the failure of a file that the body cannot be written to, for the given reason.
    package static func notWritten(path: String, reason: String) -> Self {
        Self("The file \(path) cannot be written: \(reason).")
    }

    /// Creates the failure of a written file whose length differs from the sum of the parts.
    package static func writtenLength(path: String, declared: Int64, written: Int64) -> Self {
        Self("The body has \(declared) bytes, but \(written) were written to \(path).")
    }

    /// The failure of a call whose header fields replace the `Content-Type`, which contains the boundary.
    package static let contentTypeReplaced = Self(
        "The headers of the call replace the Content-Type of the multipart form and its boundary; remove that field.")

    /// The failure of a form whose parts exceed 64 bits in length.
    package static let tooLong = Self("The multipart form exceeds 2⁶³ bytes.")
}
