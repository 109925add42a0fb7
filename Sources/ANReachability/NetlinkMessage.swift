// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// One message of a netlink datagram: a header and its payload. See netlink(7).
package struct NetlinkMessage {
    static let headerSize = 16

    package let type: Int
    /// The number of the request that this message answers.
    let sequence: UInt32
    package let payload: ArraySlice<UInt8>

    /// The `errno` with which the kernel rejected a request; `nil` for other answers.
    package var errorCode: Int32? {
        guard type == NLMSG_ERROR, let code: Int32 = payload.load(at: 0), code < 0, code > -4096 else { return nil }
        return -code
    }
}

/// The messages of a datagram, up to the first malformed one, after which the next start is unknown.
package struct NetlinkMessages: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>

    package init(_ datagram: ArraySlice<UInt8>) {
        rest = datagram
    }

    package mutating func next() -> NetlinkMessage? {
        guard let length: UInt32 = rest.load(at: 0), let type: UInt16 = rest.load(at: 4),
            let sequence: UInt32 = rest.load(at: 8), length >= NetlinkMessage.headerSize, length <= rest.count
        else { return nil }
        let message = NetlinkMessage(
            type: Int(type), sequence: sequence,
            payload: rest.prefix(Int(length)).dropFirst(NetlinkMessage.headerSize))
        rest = rest.dropFirst(Int(length).alignedForNetlink)
        return message
    }
}

/// The attributes of a message, up to the first malformed one. See rtnetlink(7).
struct NetlinkAttributes: Sequence, IteratorProtocol {
    /// Removes the two high bits of the type, which describe the encoding of the payload.
    private static let typeMask: UInt16 = 0x3FFF
    private static let headerSize = 4

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    mutating func next() -> (type: Int, payload: ArraySlice<UInt8>)? {
        guard let length: UInt16 = rest.load(at: 0), let type: UInt16 = rest.load(at: 2),
            length >= Self.headerSize, length <= rest.count
        else { return nil }
        defer { rest = rest.dropFirst(Int(length).alignedForNetlink) }
        return (Int(type & Self.typeMask), rest.prefix(Int(length)).dropFirst(Self.headerSize))
    }
}

extension ArraySlice<UInt8> {
    /// Returns the integer at an offset from the slice's start, in host byte order; `nil` if it extends past the end.
    func load<Value: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Value? {
        guard count - MemoryLayout<Value>.size >= offset else { return nil }
        return unsafe withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: offset, as: Value.self) }
    }

    /// The text up to the first NUL byte.
    var netlinkText: String {
        String(decoding: prefix { $0 != 0 }, as: UTF8.self)
    }
}

extension Int {
    /// The length including padding: messages and attributes are aligned to 4 bytes.
    var alignedForNetlink: Int { (self + 3) & ~3 }
}
