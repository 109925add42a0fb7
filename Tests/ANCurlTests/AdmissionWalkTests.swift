// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

/// The queue of admissions against a model that searches all who wait.
@Suite struct AdmissionWalkTests {
    private struct Model {
        struct Line {
            var running = 0
            var multiplexes = false
            var waiting: [(ticket: Int, element: Int)] = []
            var isEmpty: Bool { running == 0 && waiting.isEmpty }
        }
        let (perOrigin, total, streams): (Int, Int, Int)
        var lines: [String: Line] = [:]
        private var lastTicket = 0

        init(_ perOrigin: Int, _ total: Int, _ streams: Int) {
            (self.perOrigin, self.total, self.streams) = (perOrigin, total, streams)
        }

        func connections(_ line: Line, adding more: Int = 0) -> Int {
            line.multiplexes ? (line.running + more + streams - 1) / streams : line.running + more
        }

        private func hasRoom(_ line: Line) -> Bool {
            let taken = lines.values.reduce(0) { $0 + connections($1) }
            let then = connections(line, adding: 1)
            return then <= perOrigin && (then == connections(line) || taken < total)
        }

        mutating func enter(_ element: Int, _ origin: String) -> Bool {
            var line = lines[origin] ?? Line()
            let isAdmitted = line.waiting.isEmpty && hasRoom(line)
            if isAdmitted {
                line.running += 1
            } else {
                line.waiting.append((lastTicket, element))
                lastTicket += 1
            }
            lines[origin] = line
            return isAdmitted
        }

        mutating func next() -> Int? {
            let able = lines.filter { !$0.value.waiting.isEmpty && hasRoom($0.value) }
            guard let first = able.min(by: { $0.value.waiting[0].ticket < $1.value.waiting[0].ticket }) else {
                return nil
            }
            lines[first.key]?.running += 1
            return lines[first.key]?.waiting.removeFirst().element
        }

        mutating func change(_ origin: String, _ body: (inout Line) -> Void) {
            guard var line = lines[origin] else { return }
            body(&line)
            lines[origin] = line.isEmpty ? nil : line
        }
    }

    @Test(arguments: UInt64(1)...200)
    func `exchanges are admitted as by a model that searches all who wait`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        let limits = (number(1...3), number(1...6), number(1...4))
        var model = Model(limits.0, limits.1, limits.2)
        var queue = AdmissionQueue<Int>(perOrigin: limits.0, total: limits.1, streams: limits.2)
        var (admitted, waiting): ([(Int, String)], [(element: Int, ticket: Int, origin: String)]) = ([], [])
        func admit(_ element: Int) {
            guard let index = waiting.firstIndex(where: { $0.element == element }) else {
                Issue.record("\(element) does not wait.")
                return
            }
            admitted.append((element, waiting.remove(at: index).origin))
        }
        for element in 0..<150 {
            let origin = ["a", "b", "c", "d"][number(0...3)]
            switch number(0...9) {
            case 0...3:
                let ticket = queue.enter(element, origin)
                #expect((ticket == nil) == model.enter(element, origin))
                if let ticket { waiting.append((element, ticket, origin)) } else { admitted.append((element, origin)) }
            case 4...6 where !admitted.isEmpty:
                let leaving = admitted.remove(at: number(0...(admitted.count - 1))).1
                queue.leave(leaving)
                model.change(leaving) { $0.running -= 1 }
            case 7 where !waiting.isEmpty:
                let one = waiting.remove(at: number(0...(waiting.count - 1)))
                queue.giveUp(one.ticket, one.origin)
                model.change(one.origin) { line in line.waiting.removeAll { $0.element == one.element } }
            case 8:
                queue.noteMultiplexing(origin)
                model.change(origin) { $0.multiplexes = true }
            default: break
            }
            while true {
                let next = queue.next()
                #expect(next == model.next())
                guard let next else { break }
                admit(next)
            }
        }
    }
}
