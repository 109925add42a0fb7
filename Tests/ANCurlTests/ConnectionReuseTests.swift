// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct ConnectionReuseTests {
    private static let progress: [ConnectionReuse.Progress] = [
        .begun, .answered(status: 200, .whole), .answered(status: 404, .whole), .answered(status: 401, .probe),
        .answered(status: 200, .wholeLarge), .answered(status: 407, .wholeLarge), .answered(status: 200, .part),
        .answered(status: 413, .part), .failed,
    ]

    @Test(arguments: [
        (ConnectionReuse.Kind.own, [false, false, false, false, false, false, false, false, false]),
        (.http1, [true, true, true, false, true, false, false, false, true]),
        (.exclusive, [false, true, true, false, true, true, false, false, false]),
        (.shared, [true, true, true, false, true, true, true, true, true]),
    ])
    func `a connection carries another request only if nothing of this one is left on it`(
        kind: ConnectionReuse.Kind, expected: [Bool]
    ) {
        #expect(Self.progress.map { ConnectionReuse.isAllowed(on: kind, after: $0) } == expected)
    }
}
