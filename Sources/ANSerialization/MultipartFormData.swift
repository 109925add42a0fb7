// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
import HTTPTypes

/// A `multipart/form-data` body (RFC 7578): parts from text, bytes and files, in the order in which they were appended.
///
/// ```swift
/// var form = MultipartFormData()
/// form.append("Ada", name: "user")
/// try form.append(file: "/tmp/portrait.png", name: "portrait")
/// let (contentType, body) = try form.makeBody()
/// ```
///
/// Files stay on disk until the body is sent. In the names of fields and files `"`, CR, LF and NUL become `%22`, `%0D`,
/// `%0A` and `%00`, as browsers do it (WHATWG HTML §4.10.21.8; NUL in addition); all else is sent as UTF-8.
public struct MultipartFormData: Sendable {
    /// The line between the parts, without its hyphens.
    public let boundary: String
    /// The body without the lines between the parts: header block and content of each part.
    private var parts: [Part] = []

    /// Creates an empty form with a random boundary: `Boundary+` and 16 hexadecimal digits.
    public init() {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16, uppercase: true)
        boundary = "Boundary+" + String(repeating: "0", count: max(16 - digits.count, 0)) + digits
    }

    /// Creates an empty form with a boundary that must not occur in any part.
    ///
    /// - Throws: ``SerializationError/multipart(_:)`` unless it is 1 to 70 letters, digits or `'()+_,-./:=?`.
    public init(boundary: String) throws(SerializationError) {
        let isValid = boundary.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "'()+_,-./:=?".utf8.contains(byte)
            }
        }
        guard isValid, 1...70 ~= boundary.utf8.count else { throw .multipart(.boundary(boundary)) }
        self.boundary = boundary
    }

    /// Whether nothing was appended.
    public var isEmpty: Bool { parts.isEmpty }

    /// The value of the `Content-Type` field.
    public var contentType: String {
        let needsQuotes = boundary.utf8.contains { "(),/:=?".utf8.contains($0) }
        return "multipart/form-data; boundary=" + (needsQuotes ? "\"\(boundary)\"" : boundary)
    }

    /// Appends a field with a text.
    public mutating func append(_ text: String, name: String) {
        append(Data(text.utf8), name: name)
    }

    /// Appends a field with bytes, without a `Content-Type`.
    public mutating func append(_ data: Data, name: String) {
        parts.append(Part([("Content-Disposition", Self.disposition(name, nil))], .bytes(data)))
    }

    /// Appends bytes as a file.
    ///
    /// - Parameters:
    ///   - data: The file's content.
    ///   - name: The field's name.
    ///   - fileName: The file's name.
    ///   - mediaType: By the extension of the file's name when nil, at last `application/octet-stream`.
    /// - Throws: ``SerializationError/multipart(_:)`` for a media type that cannot stand in a header.
    public mutating func append(
        _ data: Data, name: String, fileName: String, mediaType: String? = nil
    ) throws(SerializationError) {
        try append(.bytes(data), name: name, fileName: fileName, mediaType: mediaType)
    }

    /// Appends a file, which is read when the body is sent, each time that it is sent.
    ///
    /// Its size is taken now. A file that is shorter by then fails the request; of one that has grown, so much is sent.
    ///
    /// - Parameters:
    ///   - path: The path of a regular file.
    ///   - name: The field's name.
    ///   - fileName: The path's last component when nil.
    ///   - mediaType: By the extension of the file's name when nil, at last `application/octet-stream`.
    /// - Throws: ``SerializationError/multipart(_:)`` for what cannot be opened or is not a regular file.
    public mutating func append(
        file path: String, name: String, fileName: String? = nil, mediaType: String? = nil
    ) throws(SerializationError) {
        let size = try RegularFile.open(path).size
        let fileName = fileName ?? path.split(separator: "/").last.map(String.init) ?? path
        try append(.file(path: path, length: size), name: name, fileName: fileName, mediaType: mediaType)
    }

    /// Appends a part with headers of its own, in their order; there may be none.
    ///
    /// - Throws: ``SerializationError/multipart(_:)`` for a name that is not a token, and for a value with CR, LF, NUL or
    ///   another control character.
    public mutating func append(_ data: Data, headers: [(String, String)]) throws(SerializationError) {
        for (name, value) in headers {
            guard HTTPField.Name(name) != nil else { throw .multipart(.headerName(name)) }
            guard HTTPField.isValidValue(value) else { throw .multipart(.headerValue(name: name)) }
        }
        parts.append(Part(headers, .bytes(data)))
    }

    /// Appends one field for each name and value of a form, such as `tags[]`; null becomes an empty field.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``.
    public mutating func append(
        _ parameters: Parameters, encoder: URLEncodedFormEncoder = URLEncodedFormEncoder()
    ) throws(SerializationError) {
        for pair in try encoder.pairs(parameters) {
            append(pair.value ?? "", name: pair.name)
        }
    }

    /// The body, of known length, which can be sent more than once and takes little memory however large the files are.
    ///
    /// - Throws: ``SerializationError/multipart(_:)`` for a form without parts, or with more bytes than 64 bits count.
    public func makeBody() throws(SerializationError) -> (contentType: String, body: RequestBody) {
        guard !parts.isEmpty else { throw .multipart(.noParts) }
        var segments: [MultipartSegment] = []
        for (index, part) in parts.enumerated() {
            segments.append(.bytes(Data("\(index == 0 ? "" : "\r\n")--\(boundary)\r\n\(part.headerBlock)".utf8)))
            segments.append(part.content)
        }
        segments.append(.bytes(Data("\r\n--\(boundary)--\r\n".utf8)))

        var length: Int64 = 0
        for segment in segments {
            let (sum, overflows) = length.addingReportingOverflow(segment.length)
            guard !overflows else { throw .multipart(.tooLong) }
            length = sum
        }
        let body = RequestBody.stream(length: length, isReplayable: true) { [segments] in
            let reader = MultipartReader(segments)
            return BodyReader { try reader.next() }
        }
        return (contentType, body)
    }

    private mutating func append(
        _ content: MultipartSegment, name: String, fileName: String, mediaType: String?
    ) throws(SerializationError) {
        let mediaType = mediaType ?? FileMediaType.ofFile(named: fileName)
        guard HTTPField.isValidValue(mediaType) else { throw .multipart(.headerValue(name: "Content-Type")) }
        let headers = [("Content-Disposition", Self.disposition(name, fileName)), ("Content-Type", mediaType)]
        parts.append(Part(headers, content))
    }

    private static func disposition(_ name: String, _ fileName: String?) -> String {
        "form-data; name=\"\(escaped(name))\"" + (fileName.map { "; filename=\"\(escaped($0))\"" } ?? "")
    }

    private static func escaped(_ name: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            switch scalar {
            case "\"": result += "%22".unicodeScalars
            case "\r": result += "%0D".unicodeScalars
            case "\n": result += "%0A".unicodeScalars
            case "\0": result += "%00".unicodeScalars
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    private struct Part: Sendable {
        let headerBlock: String
        let content: MultipartSegment

        init(_ headers: [(String, String)], _ content: MultipartSegment) {
            headerBlock = headers.map { "\($0): \($1)\r\n" }.joined() + "\r\n"
            self.content = content
        }
    }
}
