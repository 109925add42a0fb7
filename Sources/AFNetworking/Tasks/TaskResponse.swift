// SPDX-License-Identifier: MIT

import AsyncNetworking

/// A response with a safe suggested file name. If the server suggests none that is usable, it is the last component of
/// the URL, as on Apple's platforms. It contains no `/` and is neither `.` nor `..`, so appending it to a directory
/// gives a file in that directory, which no durable download takes for its own.
final class TaskResponse: HTTPURLResponse, @unchecked Sendable {
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
