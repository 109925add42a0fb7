// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import Testing

@Suite struct DecompressionLimitCheckTests {
    private struct Row: Sendable {
        var size: Int?
        var ratio: Int?
        var threshold = 100
        var decoded: Int
        var received: Int
        var bound: TransportError.SizeLimit?
    }

    @Test(arguments: [
        // No bounds.
        Row(decoded: .max, received: 0),
        // The size, to the byte.
        Row(size: 1_000, decoded: 1_000, received: 1),
        Row(size: 1_000, decoded: 1_001, received: 1_001, bound: .decompressed(limit: 1_000)),
        Row(size: 0, decoded: 0, received: 20),
        Row(size: 0, decoded: 1, received: 20, bound: .decompressed(limit: 0)),
        Row(size: -1, decoded: 0, received: 20, bound: .decompressed(limit: -1)),
        // The ratio, above its threshold.
        Row(ratio: 10, decoded: 100, received: 1),
        Row(ratio: 10, decoded: 101, received: 1, bound: .decompressionRatio(limit: 10)),
        Row(ratio: 10, decoded: 110, received: 11),
        Row(ratio: 10, decoded: 111, received: 11, bound: .decompressionRatio(limit: 10)),
        Row(ratio: 10, threshold: -1, decoded: 1, received: 0, bound: .decompressionRatio(limit: 10)),
        // A ratio below 1 counts as 1.
        Row(ratio: 0, decoded: 101, received: 101),
        Row(ratio: .min, decoded: 102, received: 101, bound: .decompressionRatio(limit: .min)),
        // Nothing overflows.
        Row(ratio: .max, decoded: .max, received: 2),
        Row(ratio: 2, decoded: .max, received: .max),
        // The size comes first.
        Row(size: 1_000, ratio: 10, decoded: 2_000, received: 1, bound: .decompressed(limit: 1_000)),
    ])
    private func `a bound is passed by one byte more`(row: Row) {
        var limit = DecompressionLimit()
        limit.maximumSize = row.size
        limit.maximumRatio = row.ratio
        limit.ratioThreshold = row.threshold
        #expect(limit.bound(passedBy: row.decoded, from: row.received) == row.bound)
    }
}
