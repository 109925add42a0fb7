// SPDX-License-Identifier: MIT

import HTTPTypes

/// The names of recent header fields, so that those repeated in every response are validated and copied once, and the
/// fields of the latest head.
///
/// A name is looked up by its bytes, and replaces another one in its slot.
package final class HeaderFieldCache {
    @safe @exclusivity(unchecked) private var entries = [Entry?](repeating: nil, count: 64)
    /// The fields of the latest head; none while the next one is compared with them.
    @safe @exclusivity(unchecked) private var latest = HeaderFieldList()

    /// Set when a response sets a cookie.
    private let cookieFlag: CookieFlag

    /// Creates an empty cache.
    ///
    /// - Parameter cookieFlag: The flag to set when a response sets a cookie.
    package init(noting cookieFlag: CookieFlag = CookieFlag()) {
        self.cookieFlag = cookieFlag
    }

    /// Returns the field with this name and value; `nil` if the name is not a token (RFC 9110 §5.1).
    func field(
        named name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> (field: HTTPField, role: Role)? {
        guard let entry = unsafe entry(named: name) else { return nil }
        if entry.role == .setCookie { cookieFlag.set() }
        return (unsafe HTTPField(name: entry.name, lenientValue: value), entry.role)
    }

    /// Removes and returns the fields of the latest head, to compare another one with them.
    func takeLatest() -> HeaderFieldList {
        var list = HeaderFieldList()
        swap(&list, &latest)
        return list
    }

    /// Keeps the fields of a complete head, unless they are many.
    func keep(_ list: HeaderFieldList) {
        if list.isKept { latest = list }
    }

    private func entry(named name: UnsafeBufferPointer<UInt8>) -> Entry? {
        let slot = unsafe Self.slot(of: name)
        if let entry = entries[slot], unsafe entry.bytes.hasSameBytes(as: name) { return entry }
        guard let entry = unsafe Entry(name) else { return nil }
        if name.count <= Self.longestName { entries[slot] = entry }
        return entry
    }

    /// Returns a slot computed from the length and three of the bytes, which distinguishes the common names.
    private static func slot(of bytes: UnsafeBufferPointer<UInt8>) -> Int {
        guard !bytes.isEmpty else { return 0 }
        let (first, middle, last) = unsafe (bytes[0], bytes[bytes.count / 2], bytes[bytes.count - 1])
        return (bytes.count &* 31 &+ Int(first) &* 7 &+ Int(middle) &* 3 &+ Int(last)) & 63
    }

    /// The significance of a field for the engine.
    enum Role {
        case contentLength, transferEncoding, setCookie
        /// The field is not significant to the engine.
        case none
    }

    private final class Entry {
        let bytes: [UInt8]
        let name: HTTPField.Name
        let role: Role

        init?(_ bytes: UnsafeBufferPointer<UInt8>) {
            guard let name = unsafe HTTPField.Name(String(decoding: bytes, as: UTF8.self)) else { return nil }
            self.name = name
            unsafe self.bytes = Array(bytes)
            role =
                switch name {
                case .contentLength: .contentLength
                case .transferEncoding: .transferEncoding
                case .setCookie: .setCookie
                default: .none
                }
        }
    }

    /// The length in bytes up to which names are kept.
    private static let longestName = 64
}
