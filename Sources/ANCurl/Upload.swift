// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// A request's body, ready to be sent: its length is settled, and its bytes are at hand or come through a channel.
package enum Upload: Sendable {
    /// There is no body.
    case none
    /// The bytes are in memory.
    case bytes(Data)
    /// A ``BodyPump`` fills the channel.
    case channel(UploadChannel)

    /// The length to declare; nil for an unknown one.
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
