// SPDX-License-Identifier: MIT

import ANSerialization
import FoundationEssentials

/// A decompressor for gzip and zlib (RFC 1952, 1950, 1951) that does not use zlib, to verify the library's compression
/// independently.
struct Inflater {
    struct Malformed: Error {}

    private let input: [UInt8]
    private var bit = 0
    private var output: [UInt8] = []

    /// Returns the decompressed bytes after verifying their checksums.
    static func inflate(_ data: Data, _ coding: ContentCoding) throws -> Data {
        let bytes = [UInt8](data)
        let (header, trailer) = coding == .gzip ? (10, 8) : (2, 4)
        guard bytes.count >= header + trailer else { throw Malformed() }
        if coding == .gzip {
            guard Array(bytes[..<4]) == [0x1F, 0x8B, 8, 0] else { throw Malformed() }
        } else {
            guard bytes[0] & 15 == 8, (Int(bytes[0]) << 8 + Int(bytes[1])).isMultiple(of: 31) else { throw Malformed() }
        }
        var inflater = Inflater(input: Array(bytes[header..<(bytes.count - trailer)]))
        try inflater.readBlocks()
        let output = inflater.output
        let sums =
            coding == .gzip
            ? littleEndian(crc(output)) + littleEndian(UInt32(output.count)) : littleEndian(adler(output)).reversed()
        guard Array(bytes.suffix(trailer)) == sums else { throw Malformed() }
        return Data(output)
    }

    private init(input: [UInt8]) {
        self.input = input
    }

    private mutating func readBlocks() throws {
        var isLast = false
        while !isLast {
            isLast = try bits(1) == 1
            switch try bits(2) {
            case 0: try copyStored()
            case 1:
                let lengths = (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 }
                try readCodes(Codes(lengths), Codes(Array(repeating: 5, count: 30)))
            case 2: try readDynamic()
            default: throw Malformed()
            }
        }
        guard (bit + 7) / 8 == input.count else { throw Malformed() }
    }

    private mutating func copyStored() throws {
        bit = (bit + 7) / 8 * 8
        let count = try bits(16)
        guard try bits(16) == ~count & 0xFFFF, bit / 8 + count <= input.count else { throw Malformed() }
        output += input[(bit / 8)..<(bit / 8 + count)]
        bit += 8 * count
    }

    private mutating func readDynamic() throws {
        let (literals, distances, count) = (try bits(5) + 257, try bits(5) + 1, try bits(4) + 4)
        var lengths = Array(repeating: 0, count: 19)
        for index in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].prefix(count) {
            lengths[index] = try bits(3)
        }
        let codes = Codes(lengths)
        var all: [Int] = []
        while all.count < literals + distances {
            switch try symbol(codes) {
            case 16:
                guard let last = all.last else { throw Malformed() }
                all += Array(repeating: last, count: 3 + (try bits(2)))
            case 17: all += Array(repeating: 0, count: 3 + (try bits(3)))
            case 18: all += Array(repeating: 0, count: 11 + (try bits(7)))
            case let length: all.append(length)
            }
        }
        try readCodes(Codes(Array(all[..<literals])), Codes(Array(all[literals...])))
    }

    private mutating func readCodes(_ literals: Codes, _ distances: Codes) throws {
        while true {
            let value = try symbol(literals)
            if value < 256 {
                output.append(UInt8(value))
            } else if value == 256 {
                return
            } else {
                let (length, distance) = (try copyLength(value), try copyDistance(symbol(distances)))
                guard distance <= output.count else { throw Malformed() }
                // A copy may overlap its result.
                let source = Array(output.suffix(distance).prefix(length))
                for start in stride(from: 0, to: length, by: distance) {
                    output += source.prefix(length - start)
                }
            }
        }
    }

    private mutating func copyLength(_ symbol: Int) throws -> Int {
        if symbol == 285 { return 258 }
        let index = symbol - 257
        guard 0..<28 ~= index else { throw Malformed() }
        guard index >= 8 else { return index + 3 }
        let extra = index / 4 - 1
        return 3 + (4 + index % 4) << extra + (try bits(extra))
    }

    private mutating func copyDistance(_ symbol: Int) throws -> Int {
        guard 0..<30 ~= symbol else { throw Malformed() }
        guard symbol >= 4 else { return symbol + 1 }
        let extra = symbol / 2 - 1
        return 1 + (2 + symbol % 2) << extra + (try bits(extra))
    }

    private mutating func symbol(_ codes: Codes) throws -> Int {
        var code = 0
        for length in 1...15 {
            code = code << 1 | (try bits(1))
            if let symbol = codes.symbols[length << 16 | code] { return symbol }
        }
        throw Malformed()
    }

    private mutating func bits(_ count: Int) throws -> Int {
        guard bit + count <= 8 * input.count else { throw Malformed() }
        var value = 0
        for index in 0..<count {
            value |= Int(input[bit >> 3] >> UInt8(bit & 7) & 1) << index
            bit += 1
        }
        return value
    }

    /// Canonical Huffman codes (RFC 1951 §3.2.2).
    private struct Codes {
        /// The symbols by length and bits of their codes.
        var symbols: [Int: Int] = [:]

        init(_ lengths: [Int]) {
            var code = 0
            for length in 1...15 {
                for symbol in lengths.indices where lengths[symbol] == length {
                    symbols[length << 16 | code] = symbol
                    code += 1
                }
                code <<= 1
            }
        }
    }

    private static func littleEndian(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        var sum = ~0 as UInt32
        for byte in bytes { sum = sum >> 8 ^ crcTable[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] }
        return ~sum
    }

    /// The sum of each single byte.
    private static let crcTable = (0..<256 as Range<UInt32>).map { byte in
        (0..<8).reduce(byte) { sum, _ in sum >> 1 ^ (sum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }

    private static func adler(_ bytes: [UInt8]) -> UInt32 {
        var (low, high) = (1 as UInt32, 0 as UInt32)
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return high << 16 | low
    }
}
