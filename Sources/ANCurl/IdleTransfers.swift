// SPDX-License-Identifier: MIT

import ANHTTP

/// How much libcurl reads from a connection at once; it refuses to change that once a handle has worked. See
/// CURLOPT_BUFFERSIZE(3).
enum ReceiveBuffer: Int {
    /// For what is collected: there may be thousands of these.
    case small = 16384
    /// For what is streamed.
    case large = 131072

    init(for delivery: BodyDelivery) {
        self =
            switch delivery {
            case .collected: .small
            case .streamed: .large
            }
    }
}

/// Transfers that wait for their next exchange, about 6 KB each.
struct IdleTransfers {
    private var small: [Transfer] = []
    private var large: [Transfer] = []

    /// Takes a transfer with a buffer of this size, if there is one.
    mutating func take(_ buffer: ReceiveBuffer) -> Transfer? {
        switch buffer {
        case .small: small.popLast()
        case .large: large.popLast()
        }
    }

    /// Keeps a transfer, unless there are enough of its kind.
    mutating func give(_ transfer: Transfer) {
        switch transfer.buffer {
        case .small where small.count < Self.maximumCount: small.append(transfer)
        case .large where large.count < Self.maximumCount: large.append(transfer)
        case .small, .large: break
        }
    }

    mutating func removeAll() {
        small.removeAll()
        large.removeAll()
    }

    private static let maximumCount = 64
}
