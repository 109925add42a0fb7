// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct ObservedExchangesTests {
    private typealias Stage = ObservedExchanges<Int>.Stage

    /// The stages of the exchanges 1, 2, …, and the numbers of those that are removed when another one begins.
    @Test(
        arguments: [
            ([], []), ([.running, .running], []), ([.ended, .running, .ended], []), ([.over, .ended, .over], [1, 3]),
            (Array(repeating: .ended, count: 18), [1, 2]), (Array(repeating: .running, count: 40), []),
            ([.running, .ended] + Array(repeating: .ended, count: 16), [2]),
        ] as [([ObservedExchanges<Int>.Stage], [Int])])
    private func `an exchange that begins removes those that are over, and the oldest that have ended`(
        stages: [Stage], removed: [Int]
    ) {
        var exchanges = ObservedExchanges<Int>()
        for number in stages.indices { _ = exchanges.begin(number + 1, number + 1) { _ in .running } }
        #expect(exchanges.begin(100, 100) { stages.indices.contains($0 - 1) ? stages[$0 - 1] : .running } == removed)
        #expect(
            exchanges.all
                == (1...stages.count + 1).map { $0 > stages.count ? 100 : $0 }.filter { !removed.contains($0) })
    }

    @Test func `an exchange is changed by its number`() {
        var exchanges = ObservedExchanges<String>()
        for number in 1...3 { _ = exchanges.begin(number, "\(number)") { _ in .running } }
        exchanges.change(2) { $0 += " ended" }
        exchanges.change(4) { $0 += " ended" }
        #expect(exchanges.all == ["1", "2 ended", "3"])
    }
}
