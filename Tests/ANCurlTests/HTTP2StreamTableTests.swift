// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct HTTP2StreamTableTests {
    @Test func `requests open the odd streams in order`() {
        var table = HTTP2StreamTable()
        #expect((0..<3).map { _ in table.open().number } == [1, 3, 5])
    }

    @Test(arguments: [(1, 100), (2, 200), (5, 1600), (6, 3200), (10, 3200), (0, 100)])
    func `the pause before a request is sent again doubles`(attempts: Int, milliseconds: Int) {
        #expect(HTTP2Stream.pause(attempts: attempts) == .milliseconds(milliseconds))
    }

    @Test func `the number of a request that was not sent is used by the next one`() {
        var table = HTTP2StreamTable()
        let streams = (table.open(), table.open())
        table.withdraw(streams.0)
        #expect(table[1] === streams.0)
        table.withdraw(streams.1)
        let next = table.open()
        #expect(next.number == 3 && table[3] === next)
        table.close(streams.1)
        #expect(table[3] === next)
    }

    @Test func `a stream knows its head, its bytes and its end`() {
        var table = HTTP2StreamTable()
        let (first, second) = (table.open(), table.open())
        table.receive(.headers(stream: 1, endsStream: false))
        table.receive(.data(stream: 1, count: 5, endsStream: false))
        table.receive(.data(stream: 1, count: 2, endsStream: true))
        table.receive(.headers(stream: 2, endsStream: true))
        #expect(first.hasHead && first.isEnded && first.bodySize == 7 && !first.isReset)
        #expect(!second.hasHead && !second.isEnded && second.bodySize == 0)
    }

    @Test func `a head or trailers can be the end of a stream, when all of them have arrived`() {
        var table = HTTP2StreamTable()
        let (first, second) = (table.open(), table.open())
        table.receive(.headers(stream: 1, endsStream: true))
        #expect(first.hasHead && !first.isEnded)
        table.receive(.headersEnd(stream: 1))
        #expect(first.isEnded)
        table.receive(.headers(stream: 3, endsStream: false))
        table.receive(.headersEnd(stream: 3))
        #expect(!second.isEnded)
        table.receive(.headers(stream: 3, endsStream: true))
        table.receive(.reset(stream: 3, code: 0))
        #expect(!second.isEnded)
    }

    @Test(arguments: [(UInt32(7), true), (0, false), (8, false), (11, false)])
    func `only a reset with REFUSED_STREAM says that the request was not processed`(code: UInt32, isUnprocessed: Bool) {
        var table = HTTP2StreamTable()
        let stream = table.open()
        table.receive(.reset(stream: 1, code: code))
        #expect(stream.isReset && stream.isUnprocessed == isUnprocessed)
        #expect(!table.isClosing)
    }

    @Test func `the requests of streams after the last one of GOAWAY were not processed`() {
        var table = HTTP2StreamTable()
        let streams = (0..<4).map { _ in table.open() }
        // A graceful end begins with the highest number there is (RFC 9113 §6.8).
        table.receive(.goAway(lastStream: 0x7FFF_FFFF, code: 0))
        #expect(table.isClosing && streams.allSatisfy { !$0.isUnprocessed })
        table.receive(.goAway(lastStream: 3, code: 0))
        #expect(streams.map(\.isUnprocessed) == [false, false, true, true])
        table.receive(.goAway(lastStream: 5, code: 0))
        #expect(table.lastStream == 3)
    }

    @Test func `the number of streams is that of the latest settings that have one, or else not limited`() {
        var table = HTTP2StreamTable()
        #expect(table.maximumStreams == nil)
        let limits = ([nil, 10, nil, 0] as [UInt32?]).map { limit in
            table.receive(.settings(maximumStreams: limit))
            return table.maximumStreams
        }
        #expect(limits == [.max, 10, 10, 0])
    }

    @Test func `a stream that is closed is not changed any more`() {
        var table = HTTP2StreamTable()
        let stream = table.open()
        table.close(stream)
        table.receive(.headers(stream: 1, endsStream: true))
        #expect(!stream.hasHead && !stream.isEnded)
    }

    @Test func `a server that breaks the protocol gets no new streams`() {
        var table = HTTP2StreamTable()
        table.receive(.violation)
        #expect(table.isBroken && table.isClosing)
    }

    @Test(
        arguments: [
            (.headers(stream: 3, endsStream: false), true), (.data(stream: 3, count: 1, endsStream: false), true),
            (.reset(stream: 5, code: 0), true), (.data(stream: 1, count: 1, endsStream: false), false),
            (.headers(stream: 2, endsStream: false), false), (.goAway(lastStream: 9, code: 0), false),
        ] as [(HTTP2FrameScanner.Event, Bool)])
    func `a frame on a stream that no request has opened breaks the protocol`(
        event: HTTP2FrameScanner.Event, isBroken: Bool
    ) {
        var table = HTTP2StreamTable()
        table.close(table.open())
        table.receive(event)
        #expect(table.isBroken == isBroken)
    }

    @Test(
        arguments: [
            (7, HTTP2Stream.Rejection.refused, HTTP2Stream.Rejection.leftOut), (11, .overload, .leftOut),
            (0, nil, .leftOut),
        ] as [(UInt32, HTTP2Stream.Rejection?, HTTP2Stream.Rejection)])
    func `a reset does not take back what GOAWAY says`(
        code: UInt32, alone: HTTP2Stream.Rejection?, afterGoAway: HTTP2Stream.Rejection
    ) {
        var table = HTTP2StreamTable()
        let (first, second) = (table.open(), table.open())
        table.receive(.reset(stream: 1, code: code))
        #expect(first.isReset && first.rejection == alone)
        table.receive(.goAway(lastStream: 1, code: 0))
        table.receive(.reset(stream: 3, code: code))
        #expect(second.isReset && second.rejection == afterGoAway)
    }
}
