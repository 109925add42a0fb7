// SPDX-License-Identifier: MIT

import ANHTTP

/// The maximum number of bytes that libcurl reads from a connection at once. See CURLOPT_BUFFERSIZE(3).
enum ReceiveBuffer: Int {
    /// 16 KiB, for collected bodies, of which thousands may be in progress.
    case small = 16384
    /// 128 KiB, for streamed bodies.
    case large = 131072

    init(for delivery: BodyDelivery) {
        self =
            switch delivery {
            case .collected: .small
            case .streamed: .large
            }
    }
}
