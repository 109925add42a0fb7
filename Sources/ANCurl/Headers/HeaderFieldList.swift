// SPDX-License-Identifier: MIT

import Glibc
import HTTPTypes

/// The fields of a head that is being received, compared line by line with those of an earlier head.
///
/// Servers repeat most lines in every response. A line that is the same as the one at this place of the earlier head is
/// neither parsed nor copied, and a head of only such lines shares the memory of its fields with the earlier one.
struct HeaderFieldList {
    /// The fields received, followed by those of the earlier head whose places have not been reached.
    private var fields: HTTPFields = [:]
    /// The line of each of `fields`; empty if it must be parsed again.
    private var lines: [[UInt8]] = []
    /// The number of fields received.
    private(set) var count = 0

    /// Accepts a line that is not empty if the earlier head has the same line at this place; otherwise returns `false`.
    mutating func acceptRepeated(_ line: UnsafeBufferPointer<UInt8>) -> Bool {
        guard count < lines.count, unsafe lines[count].hasSameBytes(as: line) else { return false }
        count += 1
        return true
    }

    /// Appends a field.
    ///
    /// - Parameters:
    ///   - field: The field.
    ///   - line: The line with which heads that repeat the field are compared; `nil` if they must parse it again.
    mutating func append(_ field: HTTPField, repeatedBy line: UnsafeBufferPointer<UInt8>?) {
        let bytes = unsafe line.map { $0.count <= Self.longestLine ? unsafe Array($0) : [] } ?? []
        // Assigning a field whose name differs only in case would have no effect.
        if count < fields.count, fields[count].name.rawName == field.name.rawName {
            fields[count] = field
            lines[count] = bytes
        } else {
            truncate()
            if fields.isEmpty { fields.reserveCapacity(12) }
            fields.append(field)
            lines.append(bytes)
        }
        count += 1
    }

    /// Removes and returns the last field; `nil` before the first one.
    mutating func popLast() -> HTTPField? {
        guard count > 0 else { return nil }
        count -= 1
        lines[count] = []
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
