// SPDX-License-Identifier: MIT

import ANHTTP

/// The number of bytes that libcurl reads from a connection at once. See CURLOPT_BUFFERSIZE(3).
enum ReceiveBuffer: Int {
    /// For collected bodies, of which thousands may be under way.
    case small = 16384
    /// For streamed bodies.
    case large = 131072

    init(for delivery: BodyDelivery) {
        self =
            switch delivery {
            case .collected: .small
            case .streamed: .large
            }
    }
}
