// SPDX-License-Identifier: MIT

import FoundationEssentials
import Synchronization

/// A response body in memory.
final class BytesBodySource: ResponseBodySource {
    private let data: Data
    private let end: ResponseEnding
    private let isRead = Atomic(false)

    init(_ data: Data, ending: ResponseEnding) {
        // Readers may assume that the indices start at 0.
        self.data = data.startIndex == 0 ? data : Data(data)
        end = ending
    }

    func next() async throws -> Data? {
        try Task.checkCancellation()
        return take()
    }

    func collect(upTo limit: Int) async throws -> Data {
        guard data.count <= limit || isRead.load(ordering: .acquiring) else {
            throw TransportError(.responseTooLarge(.body(limit: limit)))
        }
        return take() ?? Data()
    }

    var ending: ResponseEnding? {
        isRead.load(ordering: .acquiring) ? end : nil
    }

    private func take() -> Data? {
        let wasRead = isRead.exchange(true, ordering: .acquiringAndReleasing)
        return wasRead || data.isEmpty ? nil : data
    }
}
