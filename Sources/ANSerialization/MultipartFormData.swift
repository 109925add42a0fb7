// SPDX-License-Identifier: MIT

public import ANHTTP
import ANSystem
public import FoundationEssentials
import HTTPTypes

/// A `multipart/form-data` body (RFC 7578), or one of another multipart type: parts from text, bytes, files and sequences,
/// in the order in which they were appended.
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
    /// What the parts are to each other; the fields of a form unless said otherwise.
    public let subtype: Subtype
    /// How fast the body is sent at most; nil, the default, means as fast as the connection takes it.
    public var throttle: BodyThrottle?
    /// Header block and content of each part, where the first one too begins with the end of a line, which is not sent.
    private var segments = BodySegments()
    private var partCount = 0

    /// Creates an empty form with a random boundary: `Boundary+` and 16 hexadecimal digits.
    public init() {
        boundary = Self.randomBoundary()
        subtype = .formData
    }

    /// Creates an empty body with a boundary that must not occur in any part; nil means a random one.
    ///
    /// - Throws: ``SerializationError/multipart(_:)`` unless the boundary is 1 to 70 letters, digits or `'()+_,-./:=?`, and
    ///   for parameters of the subtype that cannot stand in a header.
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

    /// Whether nothing was appended.
    public var isEmpty: Bool { segments.isEmpty }

    /// The value of the `Content-Type` field.
    public var contentType: String {
        let needsQuotes = boundary.utf8.contains { "(),/:=?".utf8.contains($0) }
        let quoted = needsQuotes ? "\"\(boundary)\"" : boundary
        return "multipart/\(subtype.name); boundary=\(quoted)"
            + subtype.parameters.map { "; \($0.name)=\(Self.quoted($0.value))" }.joined()
    }

    /// The number of bytes of the body; nil where a part does not tell its own, and where 64 bits do not hold it.
    public var length: Int64? {
        guard let length = segments.length else { return nil }
        let (sum, overflows) = length.addingReportingOverflow(Int64(lastLine.count) - (isEmpty ? 0 : 2))
        return overflows ? nil : sum
    }

    // MARK: Fields

    /// Appends a field with a text.
    public mutating func append(_ text: String, name: String) {
        append(Data(text.utf8), name: name)
    }

    /// Appends a field with bytes, without a `Content-Type`.
    public mutating func append(_ data: Data, name: String) {
        append(fieldHead(name, nil, mediaType: nil), .bytes(data))
    }

    /// Appends one field for each name and value of a form, such as `tags[]`; null becomes an empty field.
    ///
    /// Bytes at the top or within dictionaries and arrays stay bytes. Where it throws, nothing was appended.
    ///
    /// - Throws: ``SerializationError/parameters(_:)``, also for text that the encoding lacks.
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
        let fileName = fileName ?? path.split(separator: "/").last.map(String.init) ?? path
        try append(.file(path), name: name, fileName: fileName, mediaType: mediaType)
    }

    /// Appends whatever a body can be: `.file(…)`, `.stream(…)` of a sequence with or without a known length, `.bytes(…)`.
    ///
    /// A sequence that can be read once only makes a form that can be sent once only. One without a length makes a body
    /// without one, which is sent chunked; one with a wrong length fails the request.
    ///
    /// - Parameters:
    ///   - body: The part's content.
    ///   - name: The field's name.
    ///   - fileName: The file's name; nil for none.
    ///   - mediaType: By the extension of the file's name when nil, and none without a file's name.
    /// - Throws: ``SerializationError/multipart(_:)`` for a media type that cannot stand in a header, a negative length, and
    ///   a file that cannot be opened.
    public mutating func append(
        _ body: RequestBody, name: String, fileName: String?, mediaType: String? = nil
    ) throws(SerializationError) {
        if let mediaType, !HTTPField.isValidValue(mediaType) { throw .multipart(.headerValue(name: "Content-Type")) }
        let mediaType = mediaType ?? fileName.map(FileMediaType.ofFile(named:))
        let content = try Self.segment(body, name: name)
        append(fieldHead(name, fileName, mediaType: mediaType), content)
    }

    /// Appends a part with headers of its own, in their order; there may be none.
    ///
    /// - Throws: ``SerializationError/multipart(_:)`` for a name that is not a token, and for a value with CR, LF, NUL or
    ///   another control character.
    public mutating func append(_ data: Data, headers: [(String, String)]) throws(SerializationError) {
        try append(.bytes(data), headers: headers)
    }

    /// Appends whatever a body can be as a part with headers of its own; see
    /// ``append(_:name:fileName:mediaType:)-(_,_,String?,_)`` and
    /// ``append(_:headers:)-(Data,_)``.
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

    /// Appends a part: the end of what is before, the line with the boundary, the headers; then the content.
    private mutating func append(_ head: Data, _ content: BodySegment) {
        segments.append(.bytes(head))
        segments.append(content)
        partCount += 1
    }

    // MARK: The body

    /// The body, which takes little memory however large the files are.
    ///
    /// It has a length where all parts have one, and can be sent more than once where all parts can be.
    ///
    /// - Throws: ``SerializationError/multipart(_:)`` for a form without parts, or with more bytes than 64 bits count.
    public func makeBody() throws(SerializationError) -> (contentType: String, body: RequestBody) {
        let body = try plainBody()
        guard let throttle else { return (contentType, body) }
        return (contentType, try body.throttled(throttle))
    }

    /// Writes the body to a file, and returns a body that is read from there.
    ///
    /// The file appears under its name when it is complete, in place of one that was there; a failure leaves that one as
    /// it was. The throttle does not hold here.
    ///
    /// - Throws: ``SerializationError/multipart(_:)``, also when the file cannot be written or did not become as long as
    ///   the parts said; what a sequence throws; `CancellationError`.
    public func write(to path: String) async throws -> (contentType: String, body: RequestBody) {
        let body = try plainBody()
        try await body.write(to: path) { written in
            guard let length = body.length, length != written else { return }
            throw SerializationError.multipart(.writtenLength(path: path, declared: length, written: written))
        }
        return (contentType, .file(path))
    }

    private func plainBody() throws(SerializationError) -> RequestBody {
        guard !isEmpty else { throw .multipart(.noParts) }
        var segments = segments.all
        let length = length
        guard length != nil || segments.contains(where: { $0.length == nil }) else { throw .multipart(.tooLong) }
        if case .bytes(let bytes)? = segments.first { segments[0] = .bytes(bytes.dropFirst(2)) }
        segments.append(.bytes(lastLine))
        return .stream(length: length, isReplayable: segments.allSatisfy(\.isReplayable)) { [segments] in
            SegmentReader.make(segments)
        }
    }

    /// Puts fields before all parts.
    mutating func prepend(
        _ parameters: Parameters, encoder: URLEncodedFormEncoder, stringEncoding: String.Encoding
    ) throws(SerializationError) {
        let others = segments
        segments = BodySegments()
        defer { segments.append(others) }
        try append(parameters, encoder: encoder, stringEncoding: stringEncoding)
    }
}
