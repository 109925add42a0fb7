// SPDX-License-Identifier: MIT

/// A multipart form under construction (RFC 7578), passed to the block of a multipart request.
///
/// Quotation marks and line breaks in field and file names are percent-encoded, as browsers do. The parts are sent in
/// the order in which they were appended, after the fields for the parameters.
public protocol AFMultipartFormData: AnyObject {
    /// Appends a file as the field `name`. Its file name is the last component of the URL; its media type follows from
    /// the path extension. Throws -1000 of ``AFURLRequestSerializationErrorDomain`` if it is not a readable file.
    func appendPart(withFileURL fileURL: URL, name: String) throws

    /// Appends a file as the field `name`, with a file name and a media type. It is read each time the request is sent.
    /// Throws -1000 of ``AFURLRequestSerializationErrorDomain`` if it is not a readable file.
    func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws

    /// Appends a stream as the field `name`, with a file name and a media type. The stream must have exactly `length`
    /// bytes; otherwise the request fails.
    func appendPart(with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String)

    /// Appends data as the field `name`, with a file name and a media type.
    func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String)

    /// Appends data as the field `name`, without a file name.
    func appendPart(withForm data: Data, name: String)

    /// Appends a part with custom header fields, sorted by name.
    func appendPart(withHeaders headers: [String: String]?, body: Data)

    /// Limits the bandwidth: sends the form in packets of `numberOfBytes`, with a pause of `delay` seconds after each.
    func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval)
}

extension AFMultipartFormData {
    /// Appends data as the field `name`, without a file name; another spelling of ``appendPart(withForm:name:)``.
    public func appendPart(withFormData data: Data, name: String) {
        appendPart(withForm: data, name: name)
    }
}
