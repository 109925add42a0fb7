// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// One exchange of the endurance test, chosen by a seed.
struct Mix: Sendable {
    /// The way in which the request's body is sent.
    enum Upload: CaseIterable { case none, bytes, file, stream, streamOfUnknownLength, writer, writerOfUnknownLength }
    /// The way in which the response's body is read.
    enum Reading: CaseIterable { case collected, streamed, stalled }
    /// The way in which the program gives the exchange up; `nil` if it waits for the end.
    enum Abandonment: CaseIterable { case cancel, timeout, leave }

    let upload: Upload
    let reading: Reading
    let abandonment: Abandonment?
    /// The delay before the exchange is abandoned.
    let patience: Duration
    let uploadOffset: Int
    let uploadSize: Int
    let offset: Int
    let size: Int

    /// Chooses an exchange, which is abandoned with the given probability in percent.
    init(abandoning percentage: Int, using generator: inout some RandomNumberGenerator) {
        upload = Bool.random(using: &generator) ? .none : Upload.allCases.randomElement(using: &generator) ?? .none
        reading = Reading.allCases.randomElement(using: &generator) ?? .collected
        let isAbandoned = Int.random(in: 0..<100, using: &generator) < percentage
        abandonment = isAbandoned ? Abandonment.allCases.randomElement(using: &generator) : nil
        patience = .microseconds(Int.random(in: 0..<5000, using: &generator))
        func size(_ generator: inout some RandomNumberGenerator) -> Int {
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: 0
            case 1: Int.random(in: 100_000..<700_000, using: &generator)
            case 2...4: Int.random(in: 10_000..<100_000, using: &generator)
            default: Int.random(in: 1..<3000, using: &generator)
            }
        }
        uploadOffset = Int.random(in: 0..<4096, using: &generator)
        uploadSize = size(&generator)
        offset = Int.random(in: 0..<4096, using: &generator)
        self.size = size(&generator)
    }
}

/// The bytes of which all bodies are parts; the server has the same.
enum Pattern {
    static let bytes = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ ($0 >> 8) &* 13) })
}

/// A generator of reproducible random numbers (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
