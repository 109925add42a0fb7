// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

@Suite struct TransferRepeatingTests {
    @Test(
        arguments: [(401, .proxy, .server), (407, .server, .proxy), (nil, [.server, .proxy], [])]
            as [(Int?, Probes, Probes)])
    func `a challenge is known after its leg`(_ status: Int?, unknown: Probes, answered: Probes) {
        var repeating = TransferRepeating(probes: [.server, .proxy])
        repeating.send()
        repeating.beginLeg(after: status)
        #expect(repeating.probes == unknown)
        #expect(repeating.answered == answered)
        #expect(repeating.attempts == 0)
    }

    @Test func `what a server refused is left out by all easy handles that follow`() {
        var repeating = TransferRepeating(probes: [.server, .proxy])
        repeating.beginLeg(after: 401)
        repeating.beginAgain(without: .credentials(.proxy), probes: [.server, .proxy])
        #expect(repeating.omitted == .proxy)
        #expect(repeating.probes == .server)
        #expect(repeating.answered == [])
        #expect(!repeating.omitsExpectation)
        repeating.beginAgain(without: .expectation, probes: [.server, .proxy])
        repeating.beginAgain(without: nil, probes: [.server, .proxy])
        #expect(repeating.omitted == .proxy)
        #expect(repeating.omitsExpectation)
        #expect(repeating.repeats == 3)
    }

    @Test func `a new connection is made after some idle ones that were closed`() {
        var repeating = TransferRepeating(probes: [])
        let tries = (0..<10).map { _ in
            repeating.beginAgain(without: nil, probes: [])
            return repeating.mayTryIdleConnection
        }
        #expect(tries == [true, true, true, true, true, true, true, true, false, false])
    }

    @Test func `a request is sent and moved a bounded number of times`() {
        var repeating = TransferRepeating(probes: [])
        for _ in 0..<9 { repeating.send() }
        #expect(repeating.mayMove(sendingAtMost: 10))
        repeating.send()
        #expect(!repeating.mayMove(sendingAtMost: 10))
        #expect(repeating.mayMove)
        for _ in 0..<TransferRepeating.maximumRepeats { repeating.beginAgain(without: nil, probes: []) }
        #expect(!repeating.mayMove)
        #expect(!repeating.mayMove(sendingAtMost: 50))
    }

    /// A server may send any responses, in any order.
    @Test(arguments: UInt64(1)...100)
    func `no order of responses probes a party that was answered or left out`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let all = Probes(rawValue: UInt8.random(in: 0...3, using: &random))
        var repeating = TransferRepeating(probes: all)
        for _ in 0..<40 {
            let before = (repeating.omitted, repeating.repeats)
            switch Int.random(in: 0...3, using: &random) {
            case 0: repeating.send()
            case 1: repeating.beginLeg(after: Bool.random(using: &random) ? 401 : 407)
            case 2: repeating.beginAgain(without: nil, probes: all)
            default:
                let parties = Probes(rawValue: UInt8.random(in: 0...3, using: &random))
                repeating.beginAgain(without: .credentials(parties), probes: all)
            }
            #expect(repeating.probes.isSubset(of: all))
            #expect(repeating.probes.isDisjoint(with: repeating.omitted.union(repeating.answered)))
            #expect(repeating.omitted.isSuperset(of: before.0))
            #expect(repeating.repeats >= before.1)
        }
    }
}
