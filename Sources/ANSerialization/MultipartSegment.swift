// SPDX-License-Identifier: MIT

import FoundationEssentials

/// A stretch of a multipart body.
enum MultipartSegment: Sendable {
    case bytes(Data)
    case file(path: String, length: Int64)

    var length: Int64 {
        switch self {
        case .bytes(let data): Int64(data.count)
        case .file(_, let length): length
        }
    }
}
