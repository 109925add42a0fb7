// SPDX-License-Identifier: MIT

import ANCurl
import ANHTTP
import TestSupport
import Testing

/// Random orders of what tasks and the loop do with a WebSocket connection, against a model of a few variables.
@Suite struct WebSocketChannelWalkTests {
    private struct Lost: Error {}

    /// The end of a connection as its reader sees it.
    private enum Reading: Equatable {
        case frames([[UInt8]], mustResume: Bool)
        case end, notYet, error
    }

    private struct Model {
        var pending: [[UInt8]] = []
        var pendingBytes = 0
        var isPaused = false
        var isClosing = false
        var isServiceRequested = false
        var commands = 0
        var closureCode: UInt16?
        var unsent = 0
        var ending: Bool?

        var mayBeSent: Bool { ending == nil && !isClosing && closureCode == nil }

        mutating func take() -> Reading {
            if !pending.isEmpty {
                defer { (pending, pendingBytes, isPaused) = ([], 0, false) }
                return .frames(pending, mustResume: isPaused)
            }
            guard let ending else { return .notYet }
            if isClosing { return .end }
            return ending && [nil, 1000, 1001].contains(closureCode) ? .end : .error
        }
    }

    @Test(arguments: UInt64(1)...300)
    func `frames are read once and in their order, and nothing is sent after the end`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        let channel = WebSocketChannel(WebSocketOptions())
        let capacity = 3 * MemoryLayout<WebSocketFrame>.stride
        var model = Model()
        for step in 0..<80 {
            switch number(0...11) {
            case 0...2 where model.ending == nil && model.closureCode == nil:
                let payload = [UInt8](repeating: UInt8(step), count: number(0...20))
                let isPaused = channel.add(WebSocketFrame(.binary, payload), capacity: capacity)
                if !model.isClosing {
                    model.pending.append(payload)
                    model.pendingBytes += payload.count + MemoryLayout<WebSocketFrame>.stride
                    model.isPaused = model.pendingBytes >= capacity
                }
                #expect(isPaused == model.isPaused && channel.isPaused == isPaused)
            case 3, 4:
                #expect(Self.read(channel) == model.take())
            case 5, 6:
                let payload = [UInt8](repeating: 0, count: number(0...20))
                let sending = try? channel.send { WebSocketFrame(.text, payload) }
                #expect((sending != nil) == model.mayBeSent)
                guard let sending else { continue }
                // A masked frame begins with 2 bytes and a mask of 4.
                model.unsent += 6 + payload.count
                #expect(sending.mustServe == !model.isServiceRequested)
                model.isServiceRequested = true
            case 7:
                let limit = number(0...60)
                var accepted = 0
                channel.withOutput { output in
                    while accepted < limit,
                        output.sendOnce({ bytes in
                            let count = min(bytes.count, limit - accepted)
                            accepted += count
                            return count
                        }) > 0
                    {}
                }
                #expect(accepted == min(limit, model.unsent))
                model.unsent -= accepted
            case 8:
                #expect(channel.takeCommands().count == model.commands)
                (model.commands, model.isServiceRequested) = (0, false)
            case 9 where number(0...3) == 0:
                let isAdded = channel.add(.close(WebSocketClosure(code: 1000)))
                #expect(isAdded == (model.ending == nil))
                if isAdded {
                    (model.isClosing, model.pending, model.pendingBytes, model.isPaused) = (true, [], 0, false)
                    model.commands += 1
                }
            case 10 where number(0...3) == 0 && model.ending == nil && model.closureCode == nil:
                let code: UInt16 = [1000, 1001, 1011, 4000][number(0...3)]
                channel.receive(WebSocketClosure(code: code))
                model.closureCode = code
            case 11 where number(0...9) == 0:
                let isOrderly = number(0...1) == 0
                channel.end(isOrderly ? .success(()) : .failure(Lost()))
                if model.ending == nil { model.ending = isOrderly }
                (model.commands, model.unsent) = (0, 0)
            default: break
            }
        }
        #expect(channel.closure?.code == model.closureCode)
    }

    private static func read(_ channel: WebSocketChannel) -> Reading {
        do {
            switch try channel.takeFrames() {
            case .frames(let frames, let mustResume): return .frames(frames.map(\.payload), mustResume: mustResume)
            case .end: return .end
            case .notYet: return .notYet
            }
        } catch {
            return .error
        }
    }
}
