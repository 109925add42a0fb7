// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import TestSupport
import Testing

@Suite struct TransferConnectionTests {
    @Test func `libcurl is told whenever the next leg speaks another version`() {
        var connection = TransferConnection()
        var told: [Bool?] = []
        for version in [HTTPVersion.http1_1, .http2, .http2, .http1_1, .http3, .http2] {
            connection.version = version
            told.append(connection.ignoreLength())
        }
        #expect(told == [nil, true, nil, false, nil, true])
        connection.leave()
        #expect(connection.ignoreLength() == true, "Another easy handle does not know.")
    }

    @Test func `libcurl is told once whether it may keep a connection`() {
        var connection = TransferConnection()
        let told = [false, true, true, false, false].map { connection.forbidReuse($0) }
        #expect(told == [false, true, false, true, false])
    }

    @Test func `a spoilt connection stays so until it is left`() {
        var connection = TransferConnection()
        var answers = [connection.check(true), connection.isSpoilt, connection.check(false), connection.isSpoilt]
        _ = connection.forbidReuse(true)
        answers.append(connection.isSpoilt)
        connection.leave()
        answers.append(connection.isSpoilt)
        #expect(answers == [true, false, false, true, true, false])
    }

    /// Compares random orders of events with one flag for each fact.
    @Test(arguments: UInt64(1)...100)
    func `no order of events loses what becomes of a connection`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var connection = TransferConnection()
        var (isForbidden, isSpoilt) = (false, false)
        for _ in 0..<40 {
            switch Int.random(in: 0...3, using: &random) {
            case 0 where !isSpoilt:
                let isUsable = Bool.random(using: &random)
                let answer = connection.check(isUsable)
                #expect(answer == isUsable)
                isSpoilt = !isUsable
            case 1 where !isSpoilt:
                let wish = Bool.random(using: &random)
                let mustTell = connection.forbidReuse(wish)
                #expect(mustTell == (wish != isForbidden))
                isForbidden = wish
            case 2:
                connection.leave()
                (isForbidden, isSpoilt) = (false, false)
            default: break
            }
            let fate = connection.fate
            #expect(fate == (isSpoilt ? .spoilt : isForbidden ? .forbidden : .reusable))
        }
    }
}
