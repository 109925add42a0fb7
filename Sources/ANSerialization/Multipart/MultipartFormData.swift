// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
import HTTPTypes

/// A builder for `multipart/form-data` bodies (RFC 7578) and other multipart types, with parts from text, bytes, files
/// and sequences in the order in which they are appended.
///
/// ```swift
/// var form = MultipartFormData()
/// form.append("Ada", name: "user")
/// try form.append(file: "/tmp/portrait.png", name: "portrait")
/// let (contentType, body) = try form.makeBody()
/// ```
///
/// The functions of a session accept it as `body: .form(form)`; ``makeBody()`` is for other clients.
///
/// Files stay on disk until the body is sent. In the names of fields and files, `"`, CR, LF and NUL are written as
/// `%22`, `%0D`, `%0A` and `%00`, as by browsers (WHATWG HTML §4.10.21.8; NUL in addition), in names of fields also any
/// line break as `%0D%0A`; all other characters are sent as UTF-8.
public struct MultipartFormData: Sendable {
    /// The boundary between the parts, without its hyphens; by default `Boundary+` and 16 random hexadecimal digits.
    public let boundary: String
    /// The multipart subtype; ``Subtype/formData`` by default.
    package let subtype: Subtype
    /// A limit for the speed of sending the body; `nil`, the default, for none.
    ///
    /// It applies to bodies that ``makeBody()`` returns after it was set, and to requests created with the form after
    /// it was set, but not to ``write(to:)``.
    package var throttle: BodyThrottle?
    /// The header and the content of each part. The first header also begins with a line break, which is not sent.
    private var segments = BodySegments()
    private var partCount = 0

    /// Creates an empty `multipart/form-data` body with a random boundary: `Boundary+` and 16 hexadecimal digits.
    public init() {
        boundary = Self.randomBoundary()
        subtype = .formData
    }

    /// Creates an empty multipart body of a subtype, with a given or a random boundary.
    ///
    /// - Parameters:
    ///   - subtype: The multipart subtype; ``Subtype/formData`` by default.
    ///   - boundary: The boundary without its hyphens, which must not occur in any part; this is not checked. `nil`,
    ///     the default, for a random one.
    /// - Throws: ``SerializationError/multipart(_:)`` unless the boundary consists of 1 to 70 ASCII letters, digits and
    ///   `'()+_,-./:=?` (RFC 2046 §5.1.1, without the space), and for subtype parameters that are not printable ASCII.
    public init(subtype: Subtype = .formData, boundary: String? = nil) throws(SerializationError) {
        let boundary = boundary ?? Self.randomBoundary()
        guard boundary.utf8.allSatisfy(Self.isBoundaryByte), 1...70 ~= boundary.utf8.count else {
            throw .multipart(.boundary(boundary))
        }
        for (name, value) in subtype.parameters where !value.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) {
            throw .multipart(.headerValue(name: name))
        }
        self.boundary = boundary
        self.subtype = subtype
    }

    /// Whether the body has no parts.
    package var isEmpty: Bool { segments.isEmpty }
    /// Whether all parts can be sent more than once.
    var isReplayable: Bool { segments.all.allSatisfy(\.isReplayable) }

    /// The value of the `Content-Type` field, such as `multipart/form-data; boundary=B`: the multipart subtype, the
    /// boundary, quoted if necessary, and the parameters of ``Subtype/related(type:start:)``.
    public var contentType: String {
        let needsQuotes = boundary.utf8.contains { "(),/:=?".utf8.contains($0) }
        let quoted = needsQuotes ? "\"\(boundary)\"" : boundary
        return "multipart/\(subtype.name); boundary=\(quoted)"
            + subtype.parameters.map { "; \($0.name)=\(Self.quoted($0.value))" }.joined()
    }

    /// The number of bytes of the complete body, with delimiters and headers; `nil` if the length of a part is unknown
    /// or the sum exceeds `Int64`. Without parts, it is that of the closing delimiter, although ``makeBody()`` fails.
    public var length: Int64? {
        guard let length = segments.length else { return nil }
        let (sum, overflows) = length.addingReportingOverflow(Int64(lastLine.count) - (isEmpty ? 0 : 2))
        return overflows ? nil : sum
    }

    // MARK: Fields

    /// Appends a field with text in UTF-8, without a `Content-Type`.
    ///
    /// - Parameters:
    ///   - text: The value of the field, which is sent unchanged.
    ///   - name: The name of the field, which may occur several times. It is escaped where necessary.
    public mutating func append(_ text: String, name: String) {
        append(Data(text.utf8), name: name)
    }

    /// Appends a field with bytes, without a file name and `Content-Type`.
    ///
    /// - Parameters:
    ///   - data: The value of the field, which is sent unchanged.
    ///   - name: The name of the field, which may occur several times. It is escaped where necessary.
    public mutating func append(_ data: Data, name: String) {
        append(fieldHead(name, nil, mediaType: nil), .bytes(data))
    }

    /// Appends one field for each name and value of encoded parameters, such as `tags[]`, by default sorted by name.
    ///
    /// By default null becomes an empty field. Bytes are not encoded as text, except in sets; empty parameters append
    /// nothing. If an error is thrown, nothing is appended.
    ///
    /// - Parameters:
    ///   - parameters: The parameters, which must be a dictionary.
    ///   - encoder: The encoder for names and values; by default one with the default options. Nothing is
    ///     percent-encoded.
    ///   - stringEncoding: The text encoding of the values; UTF-8 by default. Names are always in UTF-8.
    /// - Throws: ``SerializationError/parameters(_:)`` if the parameters are not a dictionary, are nested more than 512
    ///   levels deep, contain a value that cannot be encoded, such as NaN or text that `stringEncoding` does not
    ///   support, or a closure of the encoder throws; a ``SerializationError`` that a closure throws is thrown
    ///   unchanged.
    public mutating func append(
        _ parameters: Parameters, encoder: URLEncodedFormEncoder = URLEncodedFormEncoder(),
        stringEncoding: String.Encoding = .utf8
    ) throws(SerializationError) {
        var fields: [(name: String, content: Data)] = []
        for pair in try encoder.multipartPairs(parameters) {
            guard let data = pair.content(in: stringEncoding) else { throw .parameters(.textEncoding(path: pair.name)) }
            fields.append((pair.name, data))
        }
        for field in fields { append(field.content, name: field.name) }
    }

    // MARK: Files and other parts

    /// Appends bytes in memory as a part with a file name.
    ///
    /// - Parameters:
    ///   - data: The content of the file.
    ///   - name: The name of the field, which may occur several times. It is escaped where necessary.
    ///   - fileName: The name of the file that the server receives. It is escaped where necessary.
    ///   - mediaType: The media type; `nil`, the default, to derive it from the extension of the file name by a fixed
    ///     table, or else use `application/octet-stream`.
    /// - Throws: ``SerializationError/multipart(_:)`` for a media type with control characters, or with a space or tab
    ///   at either end.
    public mutating func append(
        _ data: Data, name: String, fileName: String, mediaType: String? = nil
    ) throws(SerializationError) {
        try append(.bytes(data), name: name, fileName: fileName, mediaType: mediaType)
    }

    /// Appends a file, which is read each time the body is sent.
    ///
    /// The size of the file is determined now. If the file has become shorter when it is read, the request fails with
    /// `TransportError.RequestBodyFailure.source`; if it has become longer, the additional bytes are not sent.
    ///
    /// - Parameters:
    ///   - path: The path of a file; symbolic links are followed. A pipe, a device or a file that the system generates,
    ///     as in `/proc`, is a part of unknown length.
    ///   - name: The name of the field, which may occur several times. It is escaped where necessary.
    ///   - fileName: The name of the file that the server receives; `nil`, the default, for the last component of the
    ///     path.
    ///   - mediaType: The media type; `nil`, the default, to derive it from the extension of the file name by a fixed
    ///     table, or else use `application/octet-stream`.
    /// - Throws: ``SerializationError/multipart(_:)`` if the file cannot be opened or is not regular, and for a media
    ///   type with control characters, or with a space or tab at either end.
    public mutating func append(
        file path: String, name: String, fileName: String? = nil, mediaType: String? = nil
    ) throws(SerializationError) {
        let fileName = fileName ?? path.split(at: "/").last.map(String.init) ?? path
        try append(.file(path), name: name, fileName: fileName, mediaType: mediaType)
    }

    /// Appends a part with any kind of body: bytes, a string, a file, or a sequence or closure with or without a known
    /// length.
    ///
    /// With a part that is not replayable, the form is not replayable either. With a part of unknown length, the body
    /// has no length and is sent chunked over HTTP/1.1. The size of a file is determined now. A part whose length
    /// differs from the declared one, or a file that has become shorter, fails the request with
    /// `TransportError.RequestBodyFailure.source`.
    ///
    /// - Parameters:
    ///   - body: The content of the part; `.none` is an empty part.
    ///   - name: The name of the field, which may occur several times. It is escaped where necessary.
    ///   - fileName: The name of the file that the server receives; `nil` for a field that is not a file.
    ///   - mediaType: The media type; `nil`, the default, to derive it from the extension of the file name by a fixed
    ///     table, or else use `application/octet-stream`; without a file name, it is then omitted.
    /// - Throws: ``SerializationError/multipart(_:)`` for a media type with control characters or with a space or tab
    ///   at either end, a negative length, or a file that cannot be opened or is not regular.
    public mutating func append(
        _ body: RequestBody, name: String, fileName: String?, mediaType: String? = nil
    ) throws(SerializationError) {
        if let mediaType, !HTTPField.isValidValue(mediaType) { throw .multipart(.headerValue(name: "Content-Type")) }
        let mediaType = mediaType ?? fileName.map(FileMediaType.ofFile(named:))
        let content = try Self.segment(body, name: name)
        append(fieldHead(name, fileName, mediaType: mediaType), content)
    }

    /// Appends bytes as a part with custom header fields.
    ///
    /// - Parameters:
    ///   - data: The content of the part.
    ///   - headers: The header fields in order, possibly none; no others are added, not even `Content-Disposition`.
    /// - Throws: ``SerializationError/multipart(_:)`` for a name that is not a token, or a value with CR, LF, NUL or
    ///   another control character, or with a space or tab at either end.
    public mutating func append(_ data: Data, headers: [(String, String)]) throws(SerializationError) {
        try append(.bytes(data), headers: headers)
    }

    /// Appends a part with custom header fields and any kind of body: bytes, a string, a file, or a sequence or closure
    /// with or without a known length.
    ///
    /// With a part that is not replayable, the form is not replayable either. With a part of unknown length, the body
    /// has no length and is sent chunked over HTTP/1.1. The size of a file is determined now. A part whose length
    /// differs from the declared one, or a file that has become shorter, fails the request with
    /// `TransportError.RequestBodyFailure.source`.
    ///
    /// - Parameters:
    ///   - body: The content of the part; `.none` is an empty part.
    ///   - headers: The header fields in order, possibly none; no others are added, not even `Content-Disposition`.
    /// - Throws: ``SerializationError/multipart(_:)`` for a name that is not a token, a value with CR, LF, NUL or
    ///   another control character or with a space or tab at either end, a negative length, or a file that cannot be
    ///   opened or is not regular.
    public mutating func append(_ body: RequestBody, headers: [(String, String)]) throws(SerializationError) {
        for (name, value) in headers {
            guard HTTPField.Name(name) != nil else { throw .multipart(.headerName(name)) }
            guard HTTPField.isValidValue(value) else { throw .multipart(.headerValue(name: name)) }
        }
        let content = try Self.segment(body, name: "\(partCount + 1)")
        var head = beginHead()
        for (name, value) in headers { head.append("\(name): \(value)\r\n") }
        head.append("\r\n")
        append(Data(head.bytes), content)
    }

    /// Appends a part: delimiter and header fields, then the content.
    private mutating func append(_ head: Data, _ content: BodySegment) {
        segments.append(.bytes(head))
        segments.append(content)
        partCount += 1
    }

    // MARK: The body

    /// Returns the content type and the body, which takes little memory even with large files.
    ///
    /// The body has a length if all parts have one, and is replayable if all parts are.
    /// Parts that are appended later are not part of it. If the function is called again, the bodies share the parts: a
    /// part that is not replayable can be sent by one of them only, and fails the request of any other with
    /// `TransportError.RequestBodyFailure.source`.
    ///
    /// - Returns: The value for the `Content-Type` field, and the body.
    /// - Throws: ``SerializationError/multipart(_:)`` if there are no parts, or if the length exceeds `Int64`.
    public func makeBody() throws(SerializationError) -> (contentType: String, body: RequestBody) {
        let body = try plainBody()
        guard let throttle else { return (contentType, body) }
        return (contentType, try body.throttled(throttle))
    }

    /// Writes the body to a file, and returns the content type and a body that is read from the file.
    ///
    /// The file appears under its name when it is complete, replacing an existing file, whose permissions are kept.
    /// A symbolic link to an existing file is followed. If an error is thrown, an existing file is unchanged.
    /// A part that is not replayable is read by this call, and cannot be read again.
    ///
    /// A device or a pipe is written to directly, also before an error; a named pipe must have a reader (fifo(7)), and
    /// blocks the thread while it is full. The returned body would be read from it.
    ///
    /// - Parameter path: The path of the file, whose directory must exist.
    /// - Returns: The value for the `Content-Type` field, and a replayable body. The body is read from the file each
    ///   time it is sent, so the file must be kept until then.
    /// - Throws: ``SerializationError/multipart(_:)`` if there are no parts, the length exceeds `Int64`, the file
    ///   cannot be written, the file of a part cannot be read or has become shorter, a part has another length than the
    ///   declared one, or a part that is not replayable was read before; the error thrown by a sequence or closure;
    ///   `CancellationError` if the task is cancelled.
    public func write(to path: String) async throws -> (contentType: String, body: RequestBody) {
        let length = length
        try await completeSegments().write(to: path) { written in
            guard let length, length != written else { return }
            throw SerializationError.multipart(.writtenLength(path: path, declared: length, written: written))
        }
        return (contentType, .file(path))
    }

    private func plainBody() throws(SerializationError) -> RequestBody {
        let segments = try completeSegments()
        return .writer(length: length, isReplayable: isReplayable, files: segments.flatMap(\.files)) {
            try await segments.write(to: $0)
        }
    }

    /// Returns the form with the parts encoded that a session encodes, such as JSON.
    func encodingParts(_ encode: (RequestBody) throws -> RequestBody) throws -> MultipartFormData {
        var form = self
        form.segments = BodySegments()
        for segment in segments.all {
            if case .stream(let stream) = segment, let body = stream.unencoded {
                form.segments.append(try Self.segment(encode(body), name: stream.name))
            } else {
                form.segments.append(segment)
            }
        }
        return form
    }

    /// Returns the segments of the complete body.
    private func completeSegments() throws(SerializationError) -> [BodySegment] {
        guard !isEmpty else { throw .multipart(.noParts) }
        var segments = segments.all
        guard length != nil || segments.contains(where: { $0.length == nil }) else { throw .multipart(.tooLong) }
        if case .bytes(let bytes)? = segments.first { segments[0] = .bytes(bytes.dropFirst(2)) }
        segments.append(.bytes(lastLine))
        return segments
    }
}

extension MultipartFormData {
    /// The multipart subtype: the relation between the parts of a body.
    ///
    /// The functions that append a part with a name write `Content-Disposition: form-data` for every subtype; for other
    /// subtypes than ``formData`` append parts with header fields of their own.
    @nonexhaustive
    public enum Subtype: Hashable, Sendable {
        /// `multipart/form-data`, the default: fields of a form, each with a name (RFC 7578).
        case formData
        /// `multipart/mixed`: independent parts in a meaningful order, with their own header fields (RFC 2046 §5.1.3).
        case mixed
        /// `multipart/related`: parts of a compound object (RFC 2387).
        ///
        /// `type` is the media type of the root part. `start` is the `Content-ID` of the root part, including its angle
        /// brackets; `nil`, the default, for the first part. Both must be printable ASCII, or
        /// ``MultipartFormData/init(subtype:boundary:)`` throws ``SerializationError/multipart(_:)``.
        case related(type: String, start: String? = nil)

        var name: String {
            switch self {
            case .formData: "form-data"
            case .mixed: "mixed"
            case .related: "related"
            }
        }

        /// The parameters of `Content-Type` after the boundary.
        var parameters: [(name: String, value: String)] {
            switch self {
            case .formData, .mixed: []
            case .related(let type, let start): [("type", type)] + (start.map { [("start", $0)] } ?? [])
            }
        }
    }

    static func randomBoundary() -> String {
        let digits = String(UInt64.systemRandom(in: .min ... .max), radix: 16, uppercase: true)
        return "Boundary+" + String(repeating: "0", count: max(16 - digits.count, 0)) + digits
    }

    static func isBoundaryByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "'()+_,-./:=?".utf8.contains(byte)
        }
    }

    /// Returns a quoted string (RFC 9110 §5.6.4).
    static func quoted(_ text: String) -> String {
        var result = "\""
        for character in text {
            if character == "\"" || character == "\\" { result += "\\" }
            result.append(character)
        }
        return result + "\""
    }

    /// The closing delimiter. See RFC 2046 §5.1.1.
    var lastLine: Data { Data("\r\n--\(boundary)--\r\n".utf8) }

    /// Returns a buffer with the delimiter before a part.
    func beginHead() -> ByteBuffer {
        var head = ByteBuffer(capacity: 192)
        head.append("\r\n--")
        head.append(boundary)
        head.append("\r\n")
        return head
    }

    /// Returns the delimiter and the header fields of a named part.
    func fieldHead(_ name: String, _ fileName: String?, mediaType: String?) -> Data {
        var head = beginHead()
        head.append("Content-Disposition: form-data; name=\"")
        Self.append(Self.normalizingLineBreaks(name), to: &head)
        if let fileName {
            head.append("\"; filename=\"")
            Self.append(fileName, to: &head)
        }
        head.append("\"\r\n")
        if let mediaType {
            head.append("Content-Type: ")
            head.append(mediaType)
            head.append("\r\n")
        }
        head.append("\r\n")
        return Data(head.bytes)
    }

    /// Returns a field name in which each line break, also a lone CR or LF, is CR LF.
    private static func normalizingLineBreaks(_ name: String) -> String {
        guard name.utf8.contains(where: { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }) else { return name }
        var result = String.UnicodeScalarView()
        var previous: UnicodeScalar?
        for scalar in name.unicodeScalars {
            if scalar == "\n", previous != "\r" { result.append("\r") }
            if previous == "\r", scalar != "\n" { result.append("\n") }
            result.append(scalar)
            previous = scalar
        }
        if previous == "\r" { result.append("\n") }
        return String(result)
    }

    /// Appends a field or file name, escaped as by browsers.
    private static func append(_ name: String, to head: inout ByteBuffer) {
        let isPlain = name.utf8.allSatisfy { byte in
            byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\r") && byte != UInt8(ascii: "\n") && byte != 0
        }
        guard !isPlain else { return head.append(name) }
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "\""): head.append("%22")
            case UInt8(ascii: "\r"): head.append("%0D")
            case UInt8(ascii: "\n"): head.append("%0A")
            case 0: head.append("%00")
            default: head.append(byte)
            }
        }
    }

    /// Returns the segment for a part's content; the size of a file is determined now.
    static func segment(_ body: RequestBody, name: String) throws(SerializationError) -> BodySegment {
        switch body.content {
        case .none: return .bytes(Data())
        case .bytes(let data): return .bytes(data)
        case .file(let path): return try .file(path, isReplayable: body.isReplayable, name: name)
        case .writer(let length, let isReplayable, let write):
            if let length, length < 0 {
                throw .multipart(.partLength(part: name, declared: length, produced: 0))
            }
            let unencoded = body.encoding == nil ? nil : body
            return .stream(
                StreamSegment(
                    name: name, length: length, isReplayable: isReplayable, files: body.files, unencoded: unencoded,
                    write: write))
        }
    }
}

/// A fixed table of media types by file extension; `/etc/mime.types` is not used because it may be missing or
/// different.
package enum FileMediaType {
    /// Returns the media type for a file name; `application/octet-stream` if its extension is unknown.
    package static func ofFile(named name: String) -> String {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return unknown }
        let suffix = name.utf8[name.utf8.index(after: dot)...]
        guard suffix.count <= 5 else { return unknown }
        return table[String(Substring(suffix)).lowercased()] ?? unknown
    }

    private static let unknown = "application/octet-stream"

    private static let table = [
        "7z": "application/x-7z-compressed", "aac": "audio/aac", "avi": "video/x-msvideo", "avif": "image/avif",
        "bin": "application/octet-stream", "bmp": "image/bmp", "bz2": "application/x-bzip2",
        "cer": "application/x-x509-ca-cert", "crt": "application/x-x509-ca-cert", "css": "text/css", "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif",
        "htm": "text/html", "html": "text/html", "ico": "image/x-icon", "ics": "text/calendar", "jpeg": "image/jpeg",
        "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "jsonl": "application/jsonl",
        "m4a": "audio/mp4", "m4v": "video/x-m4v", "md": "text/markdown", "mjs": "text/javascript",
        "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "oga": "audio/ogg",
        "ogg": "audio/ogg", "ogv": "video/ogg", "otf": "font/otf", "pdf": "application/pdf",
        "pem": "application/x-pem-file", "plist": "application/x-plist", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rtf": "application/rtf",
        "svg": "image/svg+xml", "swift": "text/x-swift", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "toml": "application/toml", "ttf": "font/ttf", "txt": "text/plain",
        "wasm": "application/wasm", "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp",
        "woff": "font/woff", "woff2": "font/woff2", "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip", "zst": "application/zstd",
    ]
}
