// SPDX-License-Identifier: MIT

/// A form that is being made: what the block of a multipart request is given.
///
/// In names of fields and files, quotation marks and line breaks are escaped as browsers do it. Parts stand in the order
/// in which they were appended, after those of the parameters.
public protocol AFMultipartFormData: AnyObject {
    /// Appends a file; its name is the URL's last component, its type that of its extension.
    ///
    /// - Throws: An error of ``AFURLRequestSerializationErrorDomain`` with the code -1000 for what is no file that can be read.
    func appendPart(withFileURL fileURL: URL, name: String) throws

    /// Appends a file, which is read when the request is sent, each time that it is sent.
    ///
    /// - Throws: An error of ``AFURLRequestSerializationErrorDomain`` with the code -1000 for what is no file that can be read.
    func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws

    /// Appends exactly `length` bytes of a stream, as a file.
    func appendPart(with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String)

    /// Appends bytes as a file.
    func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String)

    /// Appends a field.
    func appendPart(withForm data: Data, name: String)

    /// Appends a part with header fields of its own, in the order of their names.
    func appendPart(withHeaders headers: [String: String]?, body: Data)

    /// Sends the form in packets of so many bytes with a pause after each, in seconds.
    func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval)
}

extension AFMultipartFormData {
    /// Appends a field.
    public func appendPart(withFormData data: Data, name: String) {
        appendPart(withForm: data, name: name)
    }
}
