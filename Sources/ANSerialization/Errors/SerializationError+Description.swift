// SPDX-License-Identifier: MIT

public import FoundationEssentials

extension SerializationError: CustomStringConvertible, LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A sentence that describes the failure and what to check.
    public var description: String {
        switch self {
        case .url(let failure): failure.description
        case .parameters(let failure): failure.description
        case .multipart(let failure): failure.description
        case .rejected(let rejection): rejection.description
        case .emptyBody(let status, let wanted):
            "The response with status \(status) has no body, but a \(wanted) was requested. If that may happen, request "
                + "an optional: `.optional(…)` or `.decodable(Value?.self)`."
        case .text(let failure): failure.description
        case .json(let failure): failure.description
        case .propertyList(let failure): failure.description
        case .xml(let failure): failure.description
        case .decoding(let failure): failure.description
        case .jsonStream(let failure): failure.description
        case .parts(let failure): failure.description
        case .compound(let errors):
            "None of the serializers could read the response: "
                + errors.map { Excerpt.of(String(describing: $0), limit: 500) }.joined(separator: " / ")
        }
    }
}

extension SerializationError.URLFailure: CustomStringConvertible {
    /// A sentence that describes the problem and what to check.
    public var description: String {
        switch self {
        case .malformed(let string, let reason):
            "“\(Excerpt.ofURL(string))” is not a URL: \(reason)."
        case .scheme(let scheme, let url):
            "The scheme “\(Excerpt.of(scheme))” of “\(Excerpt.ofURL(url))” is neither http nor https. If this is a "
                + "relative path with a colon in its first segment, write “./” in front."
        case .noHost(let url):
            "“\(Excerpt.ofURL(url))” has no host; check the slashes after the scheme."
        case .noBase(let string):
            "“\(Excerpt.ofURL(string))” is relative, but there is no base URL; give one, or an absolute http or https URL."
        }
    }
}

extension SerializationError.ParametersFailure: CustomStringConvertible {
    /// A sentence that describes the problem and what to check.
    public var description: String {
        switch self {
        case .notFinite(let path):
            "The parameter “\(Excerpt.of(path))” is NaN or infinite, which cannot be sent; check how it was computed."
        case .dateOutOfRange(let path):
            "The date “\(Excerpt.of(path))” lies outside the years 1 to 9999; send it as a number or a string."
        case .tooDeep(let limit):
            "The parameters are nested more than \(limit) levels deep; check the value for a cycle."
        case .notADictionary:
            "Queries and forms consist of names and values, so their parameters must be a dictionary; send any other "
                + "value as JSON or as a body."
        case .rawText(let path):
            "The parameter “\(Excerpt.of(path))” is raw text, which only queries and forms support; use a string."
        case .rawQuery(let text):
            "“\(Excerpt.of(text))” cannot be the query of a URL; percent-encode spaces, “#” and non-ASCII characters."
        case .notInPropertyList(let path, let reason):
            "The parameter “\(Excerpt.of(path))” cannot be in a property list: \(reason)."
        case .textEncoding(let path):
            "The text “\(Excerpt.of(path))” has characters that the selected encoding does not support; use UTF-8."
        case .custom(let error):
            "The closure that encodes queries failed: \(error)"
        case .bodyPresent:
            "The request would have two bodies; pass only one of parameters, a JSON value, a form and another body."
        case .encodable(let path, let reason, _):
            "A value at “\(Excerpt.of(path))” could not be encoded: \(reason)"
        }
    }
}

extension SerializationError.MultipartFailure: CustomStringConvertible {
    /// A sentence that describes the problem and what to check.
    public var description: String {
        switch self {
        case .noParts:
            "The multipart form has no parts; append one, or send the request without a body."
        case .boundary(let boundary):
            "“\(Excerpt.of(boundary))” cannot be a multipart boundary; use 1 to 70 letters, digits or '()+_,-./:=?."
        case .headerName(let name):
            "“\(Excerpt.of(name))” cannot be the name of a header field; use letters, digits and hyphens."
        case .headerValue(let name):
            "The value of the part's header “\(Excerpt.of(name))” contains a line break or another control character; "
                + "check its source."
        case .file(let path, let reason):
            "The file \(path) cannot be sent: \(reason)."
        case .fileShrank(let path, let declared, let read):
            "The file \(path) had \(declared) bytes when it was appended, but only \(read) could be read; do not change "
                + "it while it is being sent."
        case .partLength(let part, let declared, let produced):
            "The part “\(Excerpt.of(part))” was declared with \(declared) bytes, but produced \(produced); declare the true "
                + "length, or no length."
        case .partReadTwice(let part):
            "The part “\(Excerpt.of(part))” can be read only once, but the request had to be sent again; use bytes "
                + "or a file, or declare the sequence replayable if it is."
        case .partWritten(let part):
            "The part “\(Excerpt.of(part))” is written by a closure and cannot be read; this is an error of the library."
        case .notWritten(let path, let reason):
            "The file \(path) cannot be written: \(reason)."
        case .writtenLength(let path, let declared, let written):
            "The body has \(declared) bytes, but \(written) were written to \(path)."
        case .contentTypeReplaced:
            "The headers of the call replace the Content-Type of the multipart form and its boundary; remove that field."
        case .tooLong:
            "The multipart form exceeds 2⁶³ bytes."
        }
    }
}

extension SerializationError.TextFailure: CustomStringConvertible {
    /// A sentence that describes the problem and what to check.
    public var description: String {
        switch self {
        case .unknownCharset(let charset):
            "The charset “\(Excerpt.of(charset))” of the response is unknown; request data, or specify the encoding."
        case .invalidBytes(let charset):
            "The response declares the charset “\(Excerpt.of(charset))”, but its bytes are not valid in it; request data, "
                + "or specify the encoding."
        }
    }
}
