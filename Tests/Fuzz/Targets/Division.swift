// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials

/// Ways to divide an input into the chunks in which a stream may arrive.
enum Division {
    /// Returns the chunks of several divisions: single bytes, two pseudorandom divisions that depend on the input, and
    /// for a short input each division into two chunks.
    static func all(of input: [UInt8]) -> [[ArraySlice<UInt8>]] {
        guard input.count > 1 else { return [] }
        var divisions = [input.indices.map { input[$0...$0] }]
        var random = SplitMix64(seed: Checksum.of(String(decoding: input, as: UTF8.self)))
        for longest in [4, 64] {
            var rest = input[...]
            var chunks: [ArraySlice<UInt8>] = []
            while !rest.isEmpty {
                chunks.append(rest.prefix(.random(in: 1...longest, using: &random)))
                rest = rest.dropFirst(chunks.last?.count ?? 0)
            }
            divisions.append(chunks)
        }
        if input.count <= 32 { divisions += (1..<input.count).map { [input[..<$0], input[$0...]] } }
        return divisions
    }

    /// Throws unless an outcome is the same for the whole input and for all divisions of it.
    static func requireSame<Outcome: Equatable>(
        _ input: [UInt8], _ outcome: ([ArraySlice<UInt8>]) throws -> Outcome
    ) throws {
        let whole = try outcome(input.isEmpty ? [] : [input[...]])
        for chunks in all(of: input) {
            try requireEqual(try outcome(chunks), whole, "in chunks of \(chunks.map(\.count))")
        }
    }
}
