// SPDX-License-Identifier: MIT

package import ANHTTP
import ANSystem
import FoundationEssentials

/// An assembler of messages from the frames of a WebSocket connection, whose order was checked: it inflates compressed
/// fragments, checks the UTF-8 of text as it arrives, and joins the fragments.
package struct MessageAssembler: Sendable {
    private let maximumSize: Int
    private let resets: Bool
    private var kind = WebSocketFrame.Opcode.binary
    private var isCompressed = false
    private var payload: [UInt8] = []
    private var text = UTF8Check()
    /// Created for the first compressed message.
    private var inflater: MessageInflater?

    /// Creates an assembler.
    ///
    /// - Parameters:
    ///   - maximumSize: The maximum size of a message in bytes, after decompression.
    ///   - resets: Whether each message is compressed on its own (RFC 7692 §7.1.1.1).
    package init(maximumSize: Int, resets: Bool) {
        self.maximumSize = max(0, maximumSize)
        self.resets = resets
    }

    /// Adds a data frame; returns the message of which it is the last one.
    package mutating func add(_ frame: WebSocketFrame) throws(WebSocketViolation) -> WebSocketMessage? {
        if frame.opcode != .continuation {
            (kind, isCompressed, text, payload) = (frame.opcode, frame.isCompressed, UTF8Check(), [])
        }
        let start = payload.count
        if isCompressed {
            try inflate(frame)
        } else {
            guard frame.payload.count <= maximumSize - start else { throw .tooLarge(limit: maximumSize) }
            if start == 0 { payload = frame.payload } else { payload += frame.payload }
        }
        if kind == .text {
            let isValid = text.check(start == 0 ? payload : Array(payload[start...]))
            guard isValid, !frame.isFinal || text.isComplete else {
                throw WebSocketViolation("A text message is not valid UTF-8.", code: 1007)
            }
        }
        guard frame.isFinal else { return nil }
        defer { payload = [] }
        return kind == .text ? .text(String(decoding: payload, as: UTF8.self)) : .binary(Data(payload))
    }

    /// Inflates a fragment. A message above the limit fails before more of it is inflated.
    private mutating func inflate(_ frame: WebSocketFrame) throws(WebSocketViolation) {
        do throws(SystemError) {
            if inflater == nil { inflater = try MessageInflater(resets: resets) }
            try inflater?.inflate(frame.payload, isLast: frame.isFinal, into: &payload, upTo: maximumSize)
        } catch {
            throw WebSocketViolation("A compressed message is malformed.", code: 1007)
        }
        guard payload.count <= maximumSize else { throw .tooLarge(limit: maximumSize) }
    }
}
