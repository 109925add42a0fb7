// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// The beginning of a file that is being received, and its header as soon as it is complete.
struct PartialImage {
    private(set) var data = Data()
    private(set) var header: ImageHeader?
    private let totalBytes: Int64?
    /// The size of the file at which its header is read next. It doubles, so that all readings together take time
    /// proportional to the size of the file.
    private var nextReading = 64

    /// Creates the file of a response. Its size is unknown if the response has a content coding: the bytes are counted
    /// after decoding.
    init(_ head: ResponseHead) {
        totalBytes = head.hasContentCoding ? nil : head.contentLength
    }

    /// The progress of receiving the file.
    var progress: TransferProgress { TransferProgress(completedBytes: Int64(data.count), totalBytes: totalBytes) }

    /// Appends a chunk, and returns the header if it is complete since then.
    ///
    /// - Throws: `TransportError` if the file exceeds `limit` bytes.
    mutating func append(_ chunk: Data, upTo limit: Int) throws(TransportError) -> ImageHeader? {
        try data.collect(chunk, upTo: limit)
        guard header == nil, data.count >= nextReading else { return nil }
        nextReading = data.count * 2
        header = try? ImageHeader(data)
        return header
    }
}
