// SPDX-License-Identifier: MIT

import Glibc
import HTTPTypes
import Synchronization

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

/// Whether an engine may hold cookies: a server or the program has set one at some time. Readable from any thread.
package final class CookieFlag: Sendable {
    private let wasSet = Atomic(false)
    private let maximum = Atomic(0)

    /// Creates a flag for an engine without cookies.
    package init() {}

    /// Whether a cookie was set.
    package var isSet: Bool { wasSet.load(ordering: .acquiring) }

    /// The number of cookies that the engine holds at most.
    package var maximumCount: Int { maximum.load(ordering: .acquiring) }

    /// Notes that cookies are set.
    package func set(_ count: Int = 1) {
        maximum.wrappingAdd(count, ordering: .releasing)
        if !isSet { wasSet.store(true, ordering: .releasing) }
    }

    /// Counts the cookies again if there may be more than `limit`. One thread at a time does so.
    ///
    /// - Parameter count: Returns the number of cookies, of which it may have removed some. Others may be set meanwhile.
    package func recount(above limit: Int, _ count: () -> Int) {
        let old = maximumCount
        guard old > limit else { return }
        maximum.wrappingAdd(count() - old, ordering: .releasing)
    }
}

/// The fields of a head that is being received, compared line by line with those of an earlier head.
///
/// Servers repeat most lines in every response. A line that is the same as the one at this place of the earlier head is
/// neither parsed nor copied, and a head of only such lines shares the memory of its fields with the earlier one.
struct HeaderFieldList {
    /// The fields received, followed by those of the earlier head whose places have not been reached.
    private var fields: HTTPFields = [:]
    /// The line of each of `fields`.
    private var lines: [Line] = []
    /// The number of fields received.
    private(set) var count = 0

    private struct Line {
        /// Empty if the line must be parsed again.
        var bytes: [UInt8]
        var framing: Framing
    }

    /// The meaning of a line for the end of the body.
    enum Framing: Equatable {
        case none, length(Int64), chunked
    }

    /// Accepts a line that is not empty if the earlier head has the same line at this place, and returns what that one said;
    /// otherwise returns `nil`.
    mutating func acceptRepeated(_ line: UnsafeBufferPointer<UInt8>) -> Framing? {
        guard count < lines.count, unsafe lines[count].bytes.hasSameBytes(as: line) else { return nil }
        defer { count += 1 }
        return lines[count].framing
    }

    /// Appends a field.
    ///
    /// - Parameters:
    ///   - field: The field.
    ///   - line: The line with which heads that repeat the field are compared; `nil` if they must parse it again.
    ///   - framing: The meaning of the line for the end of the body.
    mutating func append(
        _ field: HTTPField, repeatedBy line: UnsafeBufferPointer<UInt8>?, framing: Framing = .none
    ) {
        let bytes = unsafe line.map { $0.count <= Self.longestLine ? unsafe Array($0) : [] } ?? []
        let line = Line(bytes: bytes, framing: framing)
        // Assigning a field whose name differs only in case would have no effect.
        if count < fields.count, fields[count].name.rawName == field.name.rawName {
            fields[count] = field
            lines[count] = line
        } else {
            truncate()
            if fields.isEmpty { fields.reserveCapacity(12) }
            fields.append(field)
            lines.append(line)
        }
        count += 1
    }

    /// Removes and returns the last field; `nil` before the first one.
    mutating func popLast() -> HTTPField? {
        guard count > 0 else { return nil }
        count -= 1
        lines[count].bytes = []
        return fields[count]
    }

    /// Returns the fields received, which the next head is compared with.
    mutating func finish() -> HTTPFields {
        truncate()
        count = 0
        return fields
    }

    /// Removes the fields of the earlier head that were not received.
    private mutating func truncate() {
        guard count < fields.count else { return }
        fields.removeSubrange(count...)
        lines.removeSubrange(count...)
    }

    /// Whether the fields are few enough to be kept between responses.
    var isKept: Bool { lines.count <= 64 }

    /// The length in bytes up to which lines are compared.
    private static let longestLine = 1024
}

extension [UInt8] {
    func hasSameBytes(as other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count == other.count, let start = other.baseAddress else { return isEmpty && other.isEmpty }
        return unsafe withUnsafeBufferPointer { unsafe memcmp($0.baseAddress ?? start, start, other.count) == 0 }
    }
}
