// SPDX-License-Identifier: MIT

import ANHTTP
import Testing

@Suite struct TransferProgressTests {
    @Test(
        arguments: [
            (0, nil, nil),
            (Int64.max, nil, nil),
            (0, 10, 0),
            (5, 10, 0.5),
            (10, 10, 1),
            (11, 10, 1),
            (0, 0, 1),
            (5, 0, 1),
            (-5, 10, 0),
            (0, -1, 1),
            (-5, -10, 1),
            (Int64.max, Int64.max, 1),
            (Int64.min, Int64.max, 0),
            (Int64.max, 1, 1),
        ] as [(Int64, Int64?, Double?)])
    func `the fraction is between 0 and 1, or nil without a total`(completed: Int64, total: Int64?, fraction: Double?) {
        #expect(TransferProgress(completedBytes: completed, totalBytes: total).fraction == fraction)
    }
}
