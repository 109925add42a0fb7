// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

@Suite struct TransferSendingTests {
    @Test func `libcurl is given bytes until the body ends or is refused`() {
        var sending = TransferSending()
        var replies = [sending.reply()]
        _ = sending.receive(status: 413, isHeld: false)
        replies.append(sending.reply())
        sending.end()
        replies.append(sending.reply())
        #expect(replies == [.bytes, .pause, .end])
    }

    @Test(
        arguments: [
            (200, false, false, .pause), (299, false, false, .pause), (300, false, true, .pause),
            (401, false, true, .pause), (401, true, true, .bytes), (407, true, true, .bytes),
        ] as [(Int, Bool, Bool, TransferSending.Reply)])
    func `a head refuses the rest of the body only if libcurl does not answer it`(
        status: Int, isHeld: Bool, endsPause: Bool, expected: TransferSending.Reply
    ) {
        var sending = TransferSending()
        sending.pause()
        let wasPaused = sending.receive(status: status, isHeld: isHeld)
        #expect(wasPaused == endsPause)
        let reply = sending.reply()
        #expect(reply == expected)
        // The response after all.
        _ = sending.receive(status: status, isHeld: false)
        let last = sending.reply()
        #expect(last == .pause)
    }

    @Test func `libcurl that asks although it waits is told to wait, so that the end of the pause is one`() {
        var sending = TransferSending()
        sending.pause()
        let replies = [sending.reply(), sending.reply()]
        #expect(replies == [.pause, .pause])
        let wasPaused = sending.resume()
        #expect(wasPaused)
        let reply = sending.reply()
        #expect(reply == .bytes)
    }

    @Test func `a connection that takes no more is asked again only for a refusal or another leg`() {
        var sending = TransferSending()
        var changes = [sending.lose(), sending.lose(), sending.resume()]
        #expect(!sending.isPaused)
        changes += [sending.receive(status: 200, isHeld: false), sending.receive(status: 401, isHeld: true)]
        changes.append(sending.receive(status: 401, isHeld: false))
        #expect(changes == [true, false, false, false, false, true])
        let reply = sending.reply()
        #expect(reply == .pause)
        sending.beginLeg()
        _ = sending.rewind(isReplayable: true)
        let next = sending.reply()
        #expect(next == .bytes)
    }

    @Test func `a refused body is sent again in the next leg`() {
        var sending = TransferSending()
        _ = sending.receive(status: 413, isHeld: false)
        sending.beginLeg()
        #expect(!sending.isRefused)
        let reply = sending.reply()
        #expect(reply == .bytes)
    }

    @Test(arguments: [(3, nil, false), (3, 4, false), (4, 4, true), (0, 0, true)] as [(Int, Int64?, Bool)])
    func `a body is taken when libcurl has read as many bytes as it has`(_ count: Int, _ length: Int64?, isTaken: Bool)
    {
        var sending = TransferSending()
        sending.take(count, of: length)
        #expect((sending.body == .taken) == isTaken)
    }

    @Test(
        arguments: [
            (0, false, true, .nothing), (0, false, false, .nothing), (5, false, true, .source),
            (5, false, false, .impossible), (5, true, true, .impossible),
            // As after an empty body.
            (0, true, true, .impossible), (0, true, false, .impossible),
        ] as [(Int, Bool, Bool, TransferSending.Rewind)])
    func `a body of which bytes were read is rewound if its source can start again and no trailers were sent`(
        _ count: Int, hasSentTrailers: Bool, isReplayable: Bool, expected: TransferSending.Rewind
    ) {
        var sending = TransferSending()
        sending.take(count, of: nil)
        if hasSentTrailers { sending.takeTrailers() }
        let rewind = sending.rewind(isReplayable: isReplayable)
        #expect(rewind == expected)
        #expect(sending.count == (expected == .source ? 0 : count))
    }

    @Test func `a smaller number of undelivered bytes is activity until libcurl reads more`() {
        var sending = TransferSending()
        var activity = [9, 9, 8].map { sending.noteUndelivered($0) }
        _ = sending.reply()
        activity.append(sending.noteUndelivered(7))
        sending.forgetDelivery()
        activity.append(sending.noteUndelivered(6))
        #expect(activity == [false, false, true, false, false])
    }

    /// Compares random orders of events with one flag for each fact.
    @Test(arguments: UInt64(1)...300)
    func `no order of events loses a fact about the body`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var sending = TransferSending()
        var (isPaused, isTaken, isEnded, isRefused, hasTrailers, count) = (false, false, false, false, false, 0)
        for _ in 0..<60 {
            switch Int.random(in: 0...8, using: &random) {
            case 0, 1:
                let reply = sending.reply()
                #expect(reply == (isEnded ? .end : isRefused || isPaused ? .pause : .bytes))
                // libcurl asks for no bytes in a pause, nor after the end.
                guard reply == .bytes, !isPaused, !isTaken else { continue }
                switch Int.random(in: 0...3, using: &random) {
                case 0:
                    sending.pause()
                    isPaused = true
                case 1:
                    sending.finish()
                    isTaken = true
                default:
                    sending.take(1, of: 20)
                    count += 1
                    isTaken = count == 20
                }
            case 2:
                let wasPaused = sending.resume()
                #expect(wasPaused == isPaused)
                isPaused = false
            case 3 where !isEnded:
                let isHeld = Bool.random(using: &random)
                let wasPaused = sending.receive(status: 401, isHeld: isHeld)
                #expect(wasPaused == isPaused)
                (isRefused, isPaused) = (isRefused || !isHeld, false)
            case 4 where Int.random(in: 0...5, using: &random) == 0:
                sending.end()
                (isEnded, isPaused) = (true, false)
            case 5:
                let isReplayable = Bool.random(using: &random)
                let rewind = sending.rewind(isReplayable: isReplayable)
                #expect(
                    rewind == (hasTrailers ? .impossible : count == 0 ? .nothing : isReplayable ? .source : .impossible)
                )
                if rewind == .source { count = 0 }
                (isPaused, isTaken) = (false, false)
            case 6 where isTaken && !isEnded && !isRefused:
                sending.takeTrailers()
                hasTrailers = true
            case 7:
                sending.beginLeg()
                isRefused = false
            default: break
            }
            #expect(sending.isPaused == isPaused)
            #expect((sending.body == .ended) == isEnded)
            #expect(isEnded || (sending.body == .taken) == isTaken)
            #expect(sending.isRefused == isRefused)
            #expect(sending.hasSentTrailers == hasTrailers)
            #expect(sending.count == count)
        }
    }
}
