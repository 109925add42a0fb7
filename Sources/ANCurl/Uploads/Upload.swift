// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// A request's body, ready to send: its length is determined, and its bytes are in memory or produced through a
/// channel.
package enum Upload: Sendable {
    /// There is no body.
    case none
    /// The bytes are in memory.
    case bytes(Data)
    /// The bytes are written to the channel by a ``BodyPump``.
    case channel(UploadChannel)

    /// The length to declare, in bytes; `nil` if it is unknown.
    var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let data): Int64(data.count)
        case .channel(let channel): channel.length
        }
    }

    /// Whether the body can be sent a second time.
    var isReplayable: Bool {
        switch self {
        case .none, .bytes: true
        case .channel(let channel): channel.isReplayable
        }
    }
}
