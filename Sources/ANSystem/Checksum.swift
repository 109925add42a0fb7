// SPDX-License-Identifier: MIT

/// A checksum of 64 bits that detects damaged data: XXH64.
///
/// It is fast and distributes well, and is no protection against deliberate changes. See
/// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
public struct Checksum: Sendable {
    private var lanes: (UInt64, UInt64, UInt64, UInt64)
    private let seed: UInt64
    private var total: UInt64 = 0
    /// The bytes of an incomplete stripe, in the order received.
    private var rest: [UInt8] = []

    /// Creates the checksum of no bytes.
    ///
    /// - Parameter seed: A number that changes every checksum, so that those with different seeds are independent; 0 by
    ///   default.
    public init(seed: UInt64 = 0) {
        self.seed = seed
        lanes = (seed &+ Self.prime1 &+ Self.prime2, seed &+ Self.prime2, seed, seed &- Self.prime1)
    }

    /// Appends bytes to those of earlier calls; the result does not depend on the division into calls.
    public mutating func update(_ bytes: borrowing RawSpan) {
        total &+= UInt64(bytes.byteCount)
        var offset = 0
        if !rest.isEmpty {
            let missing = min(Self.stripe - rest.count, bytes.byteCount)
            for index in 0..<missing { rest.append(Self.byte(bytes, index)) }
            offset = missing
            guard rest.count == Self.stripe else { return }
            let stripe = rest
            rest = []
            mixStripes(of: unsafe stripe.span.bytes, from: 0)
        }
        offset = mixStripes(of: bytes, from: offset)
        while offset < bytes.byteCount {
            rest.append(Self.byte(bytes, offset))
            offset += 1
        }
    }

    /// Mixes all complete stripes, and returns the offset after the last one.
    @discardableResult
    private mutating func mixStripes(of bytes: borrowing RawSpan, from start: Int) -> Int {
        var offset = start
        var (one, two, three, four) = lanes
        while bytes.byteCount - offset >= Self.stripe {
            one = Self.round(one, Self.word(bytes, offset))
            two = Self.round(two, Self.word(bytes, offset + 8))
            three = Self.round(three, Self.word(bytes, offset + 16))
            four = Self.round(four, Self.word(bytes, offset + 24))
            offset += Self.stripe
        }
        lanes = (one, two, three, four)
        return offset
    }

    /// The checksum of the bytes added so far, after which more can be added.
    public var value: UInt64 {
        var hash: UInt64
        if total >= UInt64(Self.stripe) {
            let (one, two, three, four) = lanes
            hash =
                Self.rotate(one, 1) &+ Self.rotate(two, 7) &+ Self.rotate(three, 12) &+ Self.rotate(four, 18)
            for lane in [one, two, three, four] {
                hash = (hash ^ Self.round(0, lane)) &* Self.prime1 &+ Self.prime4
            }
        } else {
            hash = seed &+ Self.prime5
        }
        hash &+= total
        return Self.finish(hash, unsafe rest.span.bytes)
    }

    private static func finish(_ start: UInt64, _ bytes: borrowing RawSpan) -> UInt64 {
        var (hash, offset) = (start, 0)
        while bytes.byteCount - offset >= 8 {
            hash = rotate(hash ^ round(0, word(bytes, offset)), 27) &* prime1 &+ prime4
            offset += 8
        }
        if bytes.byteCount - offset >= 4 {
            let half = UInt32(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
            hash = rotate(hash ^ (UInt64(half) &* prime1), 23) &* prime2 &+ prime3
            offset += 4
        }
        while offset < bytes.byteCount {
            hash = rotate(hash ^ (UInt64(byte(bytes, offset)) &* prime5), 11) &* prime1
            offset += 1
        }
        hash = (hash ^ (hash >> 33)) &* prime2
        hash = (hash ^ (hash >> 29)) &* prime3
        return hash ^ (hash >> 32)
    }

    private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
        rotate(lane &+ word &* prime2, 31) &* prime1
    }

    private static func rotate(_ word: UInt64, _ bits: UInt64) -> UInt64 {
        word << bits | word >> (64 - bits)
    }

    private static func word(_ bytes: borrowing RawSpan, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    private static func byte(_ bytes: borrowing RawSpan, _ offset: Int) -> UInt8 {
        unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    private static let stripe = 32
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5
}

extension Checksum {
    /// Returns the checksum of bytes, with the seed 0 by default.
    public static func of(_ bytes: borrowing RawSpan, seed: UInt64 = 0) -> UInt64 {
        var checksum = Checksum(seed: seed)
        checksum.update(bytes)
        return checksum.value
    }

    /// Returns the checksum of a text in UTF-8, with the seed 0 by default. Canonically equivalent texts may differ.
    public static func of(_ text: String, seed: UInt64 = 0) -> UInt64 {
        of(unsafe text.utf8Span.span.bytes, seed: seed)
    }
}
