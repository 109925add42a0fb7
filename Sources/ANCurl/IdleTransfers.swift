// SPDX-License-Identifier: MIT

import ANHTTP

/// Transfers that wait for their next exchange, about 6 KB each, sorted by the size of their buffers: libcurl refuses to
/// change that once a handle has worked. See CURLOPT_BUFFERSIZE(3).
struct IdleTransfers {
    private var transfers: [Int: [Transfer]] = [:]

    /// Takes a transfer with a buffer of this size, if there is one.
    mutating func take(_ bufferSize: Int) -> Transfer? {
        transfers[bufferSize]?.popLast()
    }

    /// Keeps a transfer, unless there are enough of its kind.
    mutating func give(_ transfer: Transfer) {
        guard transfers[transfer.bufferSize, default: []].count < Self.maximumCount else { return }
        transfers[transfer.bufferSize, default: []].append(transfer)
    }

    mutating func removeAll() {
        transfers.removeAll()
    }

    private static let maximumCount = 64
}

extension BodyDelivery {
    /// How much libcurl reads from a connection at once: much for a stream, little for what is collected, because there
    /// may be thousands of these.
    var bufferSize: Int {
        switch self {
        case .collected: 16 << 10
        case .streamed: 128 << 10
        }
    }
}
