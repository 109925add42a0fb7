// SPDX-License-Identifier: MIT

import AsyncNetworking

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
