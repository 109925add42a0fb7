// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A multipart form under construction (RFC 7578), passed to the block of a multipart request.
///
/// Quotation marks, line breaks and NUL in field and file names are percent-encoded, as browsers do (WHATWG HTML
/// §4.10.21.8; NUL in addition). The parts are sent in the order in which they were appended, after the fields for the
/// parameters. The first error of a method that does not throw, such as one for a media type with control characters or
/// with a space at either end, fails the request with -1016 of ``AFURLRequestSerializationErrorDomain``. Parts that are
/// appended after the block has returned are not sent.
public protocol AFMultipartFormData: AnyObject {
    /// Appends a file with a file name and a media type that follow from its URL. Its size is determined now, and it is
    /// read each time the request is sent, which fails with -1016 of `NSURLErrorDomain` if the file has become shorter;
    /// if it has become longer, the additional bytes are not sent.
    ///
    /// - Parameters:
    ///   - fileURL: The URL of the file. The file name is its last component; the media type follows from the path
    ///     extension, and is `application/octet-stream` for an unknown one.
    ///   - name: The name of the field.
    /// - Throws: -1000 of ``AFURLRequestSerializationErrorDomain`` if it is not a readable, regular file. It does not
    ///   fail the request: if the block ignores it, the form is sent without the part.
    func appendPart(withFileURL fileURL: URL, name: String) throws

    /// Appends a file. Its size is determined now, and it is read each time the request is sent, which fails with -1016
    /// of `NSURLErrorDomain` if the file has become shorter; if it has become longer, the additional bytes are not
    /// sent.
    ///
    /// - Parameters:
    ///   - fileURL: The URL of the file.
    ///   - name: The name of the field.
    ///   - fileName: The file name to send.
    ///   - mimeType: The media type to send.
    /// - Throws: -1000 of ``AFURLRequestSerializationErrorDomain`` if it is not a readable, regular file, or the media
    ///   type has control characters or a space or tab at either end. It does not fail the request: if the block
    ///   ignores it, the form is sent without the part.
    func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws

    /// Appends the bytes of a stream, which can be read only once: a request that must be sent again fails, with -1021
    /// of `NSURLErrorDomain` after a redirect with status 307, for example, and with -1013 after a challenge.
    ///
    /// - Parameters:
    ///   - inputStream: The stream, which is read when the request is sent and must have exactly `length` bytes;
    ///     otherwise the request fails with -1016 of `NSURLErrorDomain`. `nil` appends an empty part.
    ///   - name: The name of the field.
    ///   - fileName: The file name to send.
    ///   - length: The number of bytes in the stream; a negative number counts as 0.
    ///   - mimeType: The media type to send.
    func appendPart(with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String)

    /// Appends data as a file.
    ///
    /// - Parameters:
    ///   - data: The content.
    ///   - name: The name of the field.
    ///   - fileName: The file name to send.
    ///   - mimeType: The media type to send.
    func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String)

    /// Appends data as a field without a file name and a media type.
    ///
    /// - Parameters:
    ///   - data: The value, such as the UTF-8 of a text.
    ///   - name: The name of the field.
    func appendPart(withForm data: Data, name: String)

    /// Appends a part with the given header fields only; not even `Content-Disposition` is added.
    ///
    /// - Parameters:
    ///   - headers: The header fields, sent in the order of their names; `nil` for none. A name that is not a token
    ///     (RFC 9110 §5.6.2), and a value with control characters or with a space or tab at either end, fails the
    ///     request with -1016 of ``AFURLRequestSerializationErrorDomain``.
    ///   - body: The content.
    func appendPart(withHeaders headers: [String: String]?, body: Data)

    /// Limits the bandwidth at which the form is sent; without a call of this method there is no limit. The last call
    /// applies.
    ///
    /// - Parameters:
    ///   - numberOfBytes: The size of a packet in bytes; 0 counts as 1.
    ///   - delay: The pause between two packets, in seconds; none for 0 or less, and for 10⁹ or more.
    func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval)
}

extension AFMultipartFormData {
    /// Appends data as a field without a file name and a media type; another spelling of
    /// ``appendPart(withForm:name:)``.
    ///
    /// - Parameters:
    ///   - data: The value, such as the UTF-8 of a text.
    ///   - name: The name of the field.
    public func appendPart(withFormData data: Data, name: String) {
        appendPart(withForm: data, name: name)
    }
}

/// A builder of a core multipart form that keeps the first error of its parts.
final class MultipartForm: AFMultipartFormData {
    private var form = MultipartFormData()
    private var error: (any Error)?

    /// Appends a field for each parameter.
    func append(_ parameters: [String: Any], encoding: String.Encoding) {
        note { try form.append(Parameters(foundation: parameters), stringEncoding: encoding) }
    }

    /// Sets the form as the body of a request; leaves the request unchanged if the form is empty.
    ///
    /// - Throws: The first error of a part.
    func finish(_ request: NSMutableURLRequest) throws {
        if let error { throw error }
        guard !form.isEmpty else { return }
        let (contentType, body) = try form.makeBody()
        var fields = request.allHTTPHeaderFields ?? [:]
        fields.setField("Content-Type", contentType)
        if let length = body.length { fields.setField("Content-Length", "\(length)") }
        request.allHTTPHeaderFields = fields
        request.httpBodyStream = BodyStream(body)
    }

    func appendPart(withFileURL fileURL: URL, name: String) throws {
        try append(fileURL) { try form.append(file: $0, name: name) }
    }

    func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws {
        try append(fileURL) { try form.append(file: $0, name: name, fileName: fileName, mediaType: mimeType) }
    }

    func appendPart(
        with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String
    ) {
        let content =
            inputStream.map { RequestBody.inputStream($0, length: max(0, length), replace: nil) } ?? .bytes(Data())
        note { try form.append(content, name: name, fileName: fileName, mediaType: mimeType) }
    }

    func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String) {
        note { try form.append(data, name: name, fileName: fileName, mediaType: mimeType) }
    }

    func appendPart(withForm data: Data, name: String) {
        form.append(data, name: name)
    }

    func appendPart(withHeaders headers: [String: String]?, body: Data) {
        let headers = (headers ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        note { try form.append(body, headers: headers) }
    }

    func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval) {
        form.throttle = .packets(of: Int(clamping: numberOfBytes), delay: delay.limit ?? .zero)
    }

    private func append(_ fileURL: URL, _ append: (String) throws -> Void) throws {
        guard fileURL.isFileURL else {
            throw NSError.requestSerialization(.badURL, reason: "Expected URL to be a file URL")
        }
        do {
            try append(fileURL.path)
        } catch {
            throw NSError.requestSerialization(.badURL, reason: "File URL not reachable.", underlying: error)
        }
    }

    /// Keeps the first error of the methods that cannot throw.
    private func note(_ append: () throws -> Void) {
        do { try append() } catch { self.error = self.error ?? error }
    }
}
