// SPDX-License-Identifier: MIT

import FoundationEssentials

/// The beginning of a file, read at arbitrary offsets.
///
/// Offsets come from the file, so none is trusted: reading outside of the data throws.
struct HeaderBytes {
    private let data: Data

    /// The file ends before the bytes that were to be read.
    struct Truncation: Error {}

    init(_ data: Data) {
        self.data = data
    }

    /// The number of bytes.
    var count: Int { data.count }

    /// Returns a byte.
    func byte(at offset: Int) throws(Truncation) -> Int {
        guard offset >= 0, offset < data.count else { throw Truncation() }
        return Int(data[data.startIndex + offset])
    }

    /// Returns a big-endian integer of 2 bytes.
    func big16(at offset: Int) throws(Truncation) -> Int {
        try byte(at: offset) << 8 | byte(at: offset + 1)
    }

    /// Returns a big-endian integer of 4 bytes.
    func big32(at offset: Int) throws(Truncation) -> Int {
        try big16(at: offset) << 16 | big16(at: offset + 2)
    }

    /// Returns a little-endian integer of 2 bytes.
    func little16(at offset: Int) throws(Truncation) -> Int {
        try byte(at: offset) | byte(at: offset + 1) << 8
    }

    /// Returns a little-endian integer of 3 bytes.
    func little24(at offset: Int) throws(Truncation) -> Int {
        try little16(at: offset) | byte(at: offset + 2) << 16
    }

    /// Returns a little-endian integer of 4 bytes.
    func little32(at offset: Int) throws(Truncation) -> Int {
        try little16(at: offset) | little16(at: offset + 2) << 16
    }

    /// Returns four characters, the type of a chunk or box.
    func text(at offset: Int) throws(Truncation) -> String {
        var text = ""
        for index in 0..<4 { text.unicodeScalars.append(Unicode.Scalar(UInt8(try byte(at: offset + index)))) }
        return text
    }

    /// Whether the data contain the given bytes at an offset.
    func has(_ bytes: [UInt8], at offset: Int) -> Bool {
        guard offset >= 0, offset <= data.count - bytes.count else { return false }
        return data[(data.startIndex + offset)...].starts(with: bytes)
    }
}
