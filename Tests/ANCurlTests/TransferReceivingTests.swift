// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@Suite struct TransferReceivingTests {
    private static func head(_ status: Int) throws -> ResponseHead {
        let url = try #require(URL(string: "http://localhost/"))
        return ResponseHead(status: .init(code: status), headers: [:], version: .http1_1, url: url)
    }

    @Test func `a held head is delivered once`() throws {
        var receiving = TransferReceiving()
        receiving.hold(try Self.head(401))
        let heads = [receiving.takeHeld(), receiving.takeHeld()]
        #expect(heads.map { $0?.status.code } == [401, nil])
    }

    @Test(arguments: [false, true])
    func `a challenge that is answered leaves nothing for the next leg`(isRefusal: Bool) throws {
        var receiving = TransferReceiving()
        if isRefusal { receiving.refuse(.credentials(.proxy)) } else { receiving.hold(try Self.head(407)) }
        receiving.keep([1])
        let status = receiving.beginLeg()
        let (isHeld, part) = (receiving.isHeld, receiving.refusedPart)
        let rest = receiving.takeUnread()
        #expect(rest == [])
        #expect(status == (isRefusal ? nil : 407))
        #expect(!isHeld)
        #expect(part == nil)
    }

    @Test func `only a response whose head was delivered ends, and it ends once`() throws {
        var receiving = TransferReceiving()
        var ends = [receiving.end()]
        receiving.hold(try Self.head(401))
        ends.append(receiving.end())
        receiving.refuse(.expectation)
        ends.append(receiving.end())
        receiving.beginBody()
        ends += [receiving.end(), receiving.end()]
        #expect(ends == [false, false, false, true, false])
    }

    @Test func `bytes left in the socket are taken once, and do not outlive the connection`() {
        var receiving = TransferReceiving()
        receiving.keep([1, 2])
        let taken = [receiving.takeUnread(), receiving.takeUnread()]
        #expect(taken == [[1, 2], []])
        receiving.finishUnread(isWhole: true)
        var whole = [receiving.isUnreadWhole]
        receiving.beginAgain()
        whole.append(receiving.isUnreadWhole)
        #expect(whole == [true, false])
        receiving.keep([3])
        receiving.beginAgain()
        let rest = receiving.takeUnread()
        #expect(rest == [])
    }

    /// Compares random orders of events with one flag for each fact.
    @Test(arguments: UInt64(1)...300)
    func `no order of events loses a fact about the response`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var receiving = TransferReceiving()
        var (held, refused): (Int?, RefusedPart?) = (nil, nil)
        var (isComplete, isOver, isHandedOn, isPaused, count) = (false, false, false, false, 0)
        for _ in 0..<60 {
            switch Int.random(in: 0...9, using: &random) {
            case 0 where !isComplete:
                isComplete = true
                switch Int.random(in: 0...2, using: &random) {
                case 0: receiving.beginBody()
                case 1:
                    receiving.hold(try Self.head(401))
                    held = 401
                default:
                    receiving.refuse(.expectation)
                    refused = .expectation
                }
            case 1 where isComplete && refused == nil:
                let head = receiving.takeHeld()
                #expect(head?.status.code == held)
                held = nil
                receiving.take(2)
                count += 2
            case 2, 3:
                let isNew = receiving.end()
                #expect(isNew == (isComplete && held == nil && refused == nil && !isOver))
                if isNew { isOver = true }
            case 4:
                receiving.handOn()
                isHandedOn = isHandedOn || isOver
            case 5:
                receiving.pause()
                isPaused = true
            case 6:
                let wasPaused = receiving.resume()
                #expect(wasPaused == isPaused)
                isPaused = false
            case 7 where held != nil || refused != nil:
                let status = receiving.beginLeg()
                #expect(status == held)
                (held, refused, isComplete) = (nil, nil, false)
            default: break
            }
            let now = (receiving.isHeld, receiving.isOver, receiving.isHandedOn, receiving.isPaused)
            #expect(now == (held != nil, isOver, isHandedOn, isPaused))
            let (part, total) = (receiving.refusedPart, receiving.count)
            #expect(part == refused)
            #expect(total == count)
        }
    }
}
