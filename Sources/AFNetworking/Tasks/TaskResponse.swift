// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A response with a safe suggested file name. If the server suggests none that is usable, it is the last component of
/// the URL, as on Apple's platforms. It contains no `/` and is neither `.` nor `..`, so appending it to a directory
/// gives a file in that directory, which no durable download takes for its own.
final class TaskResponse: HTTPURLResponse, @unchecked Sendable {
    /// The length of the body; `nil` for that of the header fields.
    private let length: Int64?

    /// Creates the Foundation form of a head; `nil` if Foundation rejects it.
    init?(_ head: ResponseHead) {
        length = head.expectedContentLength
        super.init(
            url: head.url, statusCode: head.status.code, httpVersion: head.version.rawValue,
            headerFields: head.headers.dictionary)
    }

    required init?(coder: NSCoder) {
        length = nil
        super.init(coder: coder)
    }

    /// The number of bytes of the body; -1 if it is unknown, which includes bodies that are decompressed.
    override var expectedContentLength: Int64 { length ?? super.expectedContentLength }

    override var suggestedFilename: String? {
        super.suggestedFilename.flatMap(Self.usable) ?? url.flatMap { Self.usable($0.lastPathComponent) }
            ?? Self.unknown
    }

    private static func usable(_ name: String) -> String? {
        let plain = String(String.UnicodeScalarView(name.unicodeScalars.map { $0 == "/" || $0 == "\0" ? "_" : $0 }))
        return ["", "_", ".", "..", unknown].contains(plain) || plain.isNameOfUnfinishedDownload ? nil : plain
    }

    private static let unknown = "Unknown"
}
