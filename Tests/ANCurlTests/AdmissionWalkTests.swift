// SPDX-License-Identifier: MIT

import ANCurl
import TestSupport
import Testing

/// The queue of admissions against a model that searches all who wait.
@Suite struct AdmissionWalkTests {
    private struct Entry {
        let element: Int
        let use: ConnectionUse
        let origin: String
        let ticket: Int?
    }

    private struct Model {
        let (perOrigin, longLivedPerOrigin, total, streams): (Int, Int, Int, Int)
        var running: [Entry] = []
        /// In the order in which they came.
        var waiting: [Entry] = []
        /// The number of exchanges on each connection of an origin that multiplexes.
        private var multiplexing: [String: Int] = [:]

        init(_ perOrigin: Int, _ longLivedPerOrigin: Int, _ total: Int, _ streams: Int) {
            (self.perOrigin, self.longLivedPerOrigin) = (perOrigin, longLivedPerOrigin)
            (self.total, self.streams) = (total, streams)
        }

        /// The connections to an origin, or to all, that long-lived exchanges have to themselves.
        func longLived(_ running: [Entry]) -> Int {
            running.count { $0.use == .exclusiveStream || $0.use == .stream && multiplexing[$0.origin] == nil }
        }

        private func exclusive(_ entries: [Entry]) -> Int {
            entries.count { $0.use == .exclusiveRequest }
        }

        /// The other connections to an origin.
        private func ordinary(_ running: [Entry], _ origin: String) -> Int {
            let entries = running.filter { $0.origin == origin }
            let count = entries.count - longLived(entries)
            guard let streams = multiplexing[origin] else { return count }
            return exclusive(entries) + (count - exclusive(entries) + streams - 1) / streams
        }

        private func all(_ running: [Entry]) -> Int {
            Set(running.map(\.origin)).reduce(longLived(running)) { $0 + ordinary(running, $1) }
        }

        func hasRoom(_ entry: Entry) -> Bool {
            let then = running + [entry]
            // There are too many if a server allows fewer exchanges on each connection than before.
            let isFull =
                longLived(then) > longLived(running)
                ? longLived(then.filter { $0.origin == entry.origin }) > longLivedPerOrigin
                : ordinary(then, entry.origin) > perOrigin
            return !isFull && all(then) <= max(total, all(running))
        }

        mutating func enter(_ entry: Entry) -> Bool {
            let isAdmitted = hasRoom(entry) && !waiting.contains(where: hasRoom)
            if isAdmitted { running.append(entry) } else { waiting.append(entry) }
            return isAdmitted
        }

        mutating func next() -> Int? {
            guard let index = waiting.firstIndex(where: hasRoom) else { return nil }
            running.append(waiting.remove(at: index))
            return running.last?.element
        }

        mutating func noteMultiplexing(_ origin: String, _ streams: Int?) {
            guard (running + waiting).contains(where: { $0.origin == origin }) else { return }
            multiplexing[origin] = streams.map { min($0, self.streams) }
        }

        mutating func remove(_ entry: Entry) {
            running.removeAll { $0.element == entry.element }
            waiting.removeAll { $0.element == entry.element }
            if !(running + waiting).contains(where: { $0.origin == entry.origin }) { multiplexing[entry.origin] = nil }
        }

        /// The number of requests to an origin, and of all connections.
        func counts(_ origin: String) -> (requests: Int, connections: Int) {
            (running.count { $0.origin == origin && $0.use == .request }, all(running))
        }
    }

    @Test(arguments: 1...UInt64(rounds(300, few: 60)))
    func `exchanges are admitted as by a model that searches all who wait`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }
        let limits = (number(1...3), number(1...3), number(1...8), number(1...4))
        var model = Model(limits.0, limits.1, limits.2, limits.3)
        var queue = AdmissionQueue<Int>(
            perOrigin: limits.0, longLivedPerOrigin: limits.1, total: limits.2, streams: limits.3)
        var most = limits.2
        let uses = seed % 4 == 0 ? [.request] : ConnectionUse.allCases
        for element in 0..<200 {
            let origin = ["a", "b", "c", "d"][number(0...3)]
            // Sometimes the queue is not asked for a while, as within a turn of the engine.
            let isAsked = number(0...4) > 0
            switch number(0...9) {
            case 0...3:
                let use = try #require(uses.randomElement(using: &random))
                let ticket = queue.enter(element, use, origin)
                let entry = Entry(element: element, use: use, origin: origin, ticket: ticket)
                #expect((entry.ticket == nil) == model.enter(entry))
            case 4...6:
                guard let entry = model.running.randomElement(using: &random) else { break }
                queue.leave(entry.use, entry.origin)
                model.remove(entry)
            case 7:
                guard let entry = model.waiting.randomElement(using: &random) else { break }
                queue.giveUp(try #require(entry.ticket), entry.use, entry.origin)
                model.remove(entry)
            case 8:
                let streams = number(0...3) > 0 ? number(1...4) : nil
                if let streams {
                    queue.noteMultiplexing(origin, streams: streams)
                } else {
                    queue.noteSingleExchanges(origin)
                }
                model.noteMultiplexing(origin, streams)
                most = max(most, model.counts(origin).connections)
            default: break
            }
            while isAsked {
                let next = queue.next()
                #expect(next == model.next())
                guard next != nil else { break }
            }
            #expect(queue.longLived == model.longLived(model.running))
            let counts = model.counts(origin)
            #expect(counts.requests <= limits.0 * limits.3 && counts.connections <= most)
        }
    }
}
