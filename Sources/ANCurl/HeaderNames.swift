// SPDX-License-Identifier: MIT

package import HTTPTypes

/// The names of header fields that were seen lately, so that the few that every response has are checked and brought to
/// lower case once.
package final class HeaderNames {
    private var entries = [Entry?](repeating: nil, count: 64)

    private struct Entry {
        let bytes: [UInt8]
        let name: HTTPField.Name
    }

    package init() {}

    /// The name of these bytes; nil when they are no token (RFC 9110 §5.1).
    package func name(of bytes: UnsafeBufferPointer<UInt8>) -> HTTPField.Name? {
        let slot = unsafe Self.slot(of: bytes)
        if let entry = entries[slot], unsafe entry.bytes.elementsEqual(bytes) { return entry.name }
        guard let name = unsafe HTTPField.Name(String(decoding: bytes, as: UTF8.self)) else { return nil }
        if bytes.count <= 64 { unsafe entries[slot] = Entry(bytes: Array(bytes), name: name) }
        return name
    }

    /// A slot from the length and three of the bytes, which tells the usual names apart.
    private static func slot(of bytes: UnsafeBufferPointer<UInt8>) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let (first, middle, last) = unsafe (bytes[0], bytes[bytes.count / 2], bytes[bytes.count - 1])
        return (bytes.count &* 31 &+ Int(first) &* 7 &+ Int(middle) &* 3 &+ Int(last)) & 63
    }
}
