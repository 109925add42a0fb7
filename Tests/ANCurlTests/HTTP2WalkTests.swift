// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import TestSupport
import Testing

/// Random frames for the pure machines of HTTP/2 and WebSocket connections.
@Suite struct HTTP2WalkTests {
    @Test(arguments: UInt64(1)...200)
    func `the table of streams counts what each stream received, and forgets nothing`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        var table = HTTP2StreamTable()
        var open: [HTTP2Stream] = []
        var bodies: [UInt32: Int] = [:]
        var ended: Set<UInt32> = []
        var refused: Set<UInt32> = []
        var leftOut: Set<UInt32> = []
        var last: UInt32?
        var isBroken = false
        var next: UInt32 = 1
        for _ in 0..<80 {
            let stream = UInt32(number(0...12))
            let isEnd = number(0...3) == 0
            if number(0...2) == 0 {
                let new = table.open()
                #expect(new.number == next)
                next += 2
                open.append(new)
                continue
            }
            if number(0...9) == 0, let index = open.indices.randomElement(using: &random) {
                let closed = open.remove(at: index)
                table.close(closed)
                #expect(table[closed.number] == nil)
                continue
            }
            let isKnown = open.contains { $0.number == stream }
            switch number(0...3) {
            case 0:
                table.receive(.headers(stream: stream, endsStream: isEnd))
                table.receive(.headersEnd(stream: stream))
                if isKnown, isEnd { ended.insert(stream) }
            case 1:
                table.receive(.data(stream: stream, count: 7, endsStream: isEnd))
                if isKnown { bodies[stream, default: 0] += 7 }
                if isKnown, isEnd { ended.insert(stream) }
            case 2:
                table.receive(.reset(stream: stream, code: isEnd ? 7 : 8))
                if isKnown, isEnd { refused.insert(stream) }
            default:
                guard number(0...5) == 0 else { continue }
                table.receive(.goAway(lastStream: stream, code: 0))
                last = min(last ?? stream, stream)
                for other in open where other.number > stream { leftOut.insert(other.number) }
                continue
            }
            if stream % 2 == 1, stream >= next { isBroken = true }
            #expect(table.isBroken == isBroken && table.lastStream == last)
            #expect(table.isClosing == (isBroken || last != nil))
            for one in open {
                #expect(table[one.number] === one)
                #expect(one.bodySize == bodies[one.number] ?? 0 && one.isEnded == ended.contains(one.number))
                #expect(one.isUnprocessed == (refused.contains(one.number) || leftOut.contains(one.number)))
            }
        }
    }

    /// Closing is rare, so that most walks are long.
    private static let opcodes: [WebSocketFrame.Opcode] =
        [
            .close, .text, .text, .binary, .binary, .continuation, .continuation, .continuation, .ping, .ping, .pong,
            .pong,
        ]

    @Test(arguments: UInt64(1)...300)
    func `a WebSocket delivers whole messages in their order, and nothing after the close`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        var machine = WebSocketStateMachine(maximumMessageSize: 40)
        var isInMessage = false
        var size = 0
        var isClosed = false
        var hasSentClose = false
        for _ in 0..<60 {
            if number(0...19) == 0 {
                let frame = machine.close(WebSocketClosure(code: 1_000))
                #expect((frame == nil) == (hasSentClose || isClosed))
                hasSentClose = true
                continue
            }
            let opcode = Self.opcodes[number(0...(Self.opcodes.count - 1))]
            var frame = WebSocketFrame(opcode, [UInt8](repeating: 97, count: number(0...20)))
            if opcode == .close { frame = WebSocketFrame(.close, [3, 232]) }
            let isData = opcode == .text || opcode == .binary || opcode == .continuation
            if isData { frame.isFinal = number(0...1) == 0 }
            let isInOrder = !isData || (opcode == .continuation) == isInMessage
            let total = (opcode == .continuation ? size : 0) + frame.payload.count
            do {
                let reaction = try machine.receive(frame)
                switch reaction {
                case .deliver: #expect(isData && isInOrder && !isClosed && !hasSentClose && total <= 40)
                case .answer(let pong): #expect(opcode == .ping && pong.payload == frame.payload && !isClosed)
                case .closed(_, let answer):
                    #expect(opcode == .close && !isClosed && (answer == nil) == hasSentClose)
                    isClosed = true
                case .none: #expect(isClosed || hasSentClose && isData || opcode == .pong)
                }
                guard isData, !isClosed else { continue }
                #expect(isInOrder && total <= 40)
                (isInMessage, size) = (!frame.isFinal, frame.isFinal ? 0 : total)
            } catch {
                #expect(isData && !isClosed && (!isInOrder || total > 40))
                return
            }
        }
    }
}
