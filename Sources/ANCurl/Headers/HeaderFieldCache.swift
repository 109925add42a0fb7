// SPDX-License-Identifier: MIT

import Glibc
import HTTPTypes

/// A cache of recent header fields, so that fields repeated in every response are validated and copied once.
///
/// A field is looked up by the bytes of its name, then of its value. A name replaces another one in its slot; so does a
/// value, unless it is long.
package final class HeaderFieldCache {
    @safe @exclusivity(unchecked) private var entries = [Entry?](repeating: nil, count: 64)

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
        return (unsafe entry.field(value), entry.role)
    }

    private func entry(named name: UnsafeBufferPointer<UInt8>) -> Entry? {
        let slot = unsafe Self.slot(of: name)
        if let entry = entries[slot], unsafe entry.bytes.hasSameBytes(as: name) { return entry }
        guard let entry = unsafe Entry(name) else { return nil }
        if name.count <= Self.longestText { entries[slot] = entry }
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
        /// The latest field, and the bytes of its value; `nil` if every value was long.
        @safe @exclusivity(unchecked) private var latest: HTTPField?
        @safe @exclusivity(unchecked) private var latestValue: [UInt8] = []

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

        func field(_ value: UnsafeBufferPointer<UInt8>) -> HTTPField {
            if unsafe latestValue.hasSameBytes(as: value), let latest { return latest }
            let field = unsafe HTTPField(name: name, lenientValue: value)
            if value.count <= HeaderFieldCache.longestText {
                latest = field
                unsafe latestValue = Array(value)
            }
            return field
        }
    }

    private static let longestText = 64
}

extension [UInt8] {
    fileprivate func hasSameBytes(as other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count, let start = other.baseAddress else { return isEmpty && other.isEmpty }
        return unsafe withUnsafeBufferPointer { unsafe memcmp($0.baseAddress ?? start, start, other.count) == 0 }
    }
}
