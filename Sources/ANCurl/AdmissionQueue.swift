// SPDX-License-Identifier: MIT

import ANHTTP

/// Decides which exchanges are given to libcurl: as many at a time as may have a connection, first come first served.
///
/// libcurl has a queue of its own, one for all hosts. Whenever a connection becomes free it tries one or two that wait at
/// its head, and if these want another host, which is busy, nobody takes the free place. So what would wait there waits
/// here, in a line for each origin.
package struct AdmissionQueue<Element> {
    /// Where a request goes: scheme, host and port.
    package typealias Origin = String

    private let perOrigin: Int
    private let total: Int
    private let streams: Int
    private var lines: [Origin: Line] = [:]
    /// The line that was looked at last, which mostly is the one that is looked at next.
    private var latest: Line?
    /// With how many lines the empty ones are dropped.
    private var lineLimit = 64
    private var nextTicket = 0
    /// The connections that are taken up by all origins together.
    private var taken = 0
    private var waiting = 0

    /// Creates a queue that admits so many to an origin and to all together, or, where an origin multiplexes, so many for
    /// each connection.
    package init(perOrigin: Int, total: Int, streams: Int) {
        self.perOrigin = max(1, perOrigin)
        self.total = max(1, total)
        self.streams = max(1, streams)
    }

    /// Adds somebody; nil where there is room at once, a ticket where there is not.
    package mutating func enter(_ element: Element, _ origin: Origin) -> Int? {
        let line = line(of: origin)
        if line.waiting == 0, hasRoom(for: line) {
            change(line) { $0.running += 1 }
            return nil
        }
        defer { nextTicket += 1 }
        line.append(element, nextTicket)
        waiting += 1
        return nextTicket
    }

    /// One that was admitted is done.
    package mutating func leave(_ origin: Origin) {
        change(line(of: origin)) { $0.running -= 1 }
    }

    /// One that waits gives up.
    package mutating func giveUp(_ ticket: Int, _ origin: Origin) {
        if change(line(of: origin), { $0.remove(ticket) }) { waiting -= 1 }
    }

    /// The origin's connections take more than one exchange at a time.
    package mutating func noteMultiplexing(_ origin: Origin) {
        let line = line(of: origin)
        guard !line.multiplexes, !line.isEmpty else { return }
        change(line) { $0.multiplexes = true }
    }

    /// Admits the one that has waited longest of those for whom there is room.
    package mutating func next() -> Element? {
        guard waiting > 0 else { return nil }
        var best: Line?
        for line in lines.values where line.waiting > 0 && line.firstTicket < best?.firstTicket ?? .max {
            if hasRoom(for: line) { best = line }
        }
        guard let best else { return nil }
        waiting -= 1
        return change(best) { line in
            line.running += 1
            return line.popFirst()
        }
    }

    private mutating func line(of origin: Origin) -> Line {
        if let latest, latest.origin == origin { return latest }
        let line = lines[origin] ?? addLine(origin)
        latest = line
        return line
    }

    /// An empty line is kept for the next request, until there are many.
    private mutating func addLine(_ origin: Origin) -> Line {
        if lines.count >= lineLimit {
            lines = lines.filter { !$0.value.isEmpty }
            lineLimit = max(64, 2 * lines.count)
        }
        let line = Line(origin: origin)
        lines[origin] = line
        return line
    }

    private func hasRoom(for line: Line) -> Bool {
        let now = line.connections(streams)
        let then = line.connections(streams, adding: 1)
        return then <= perOrigin && taken - now + then <= total
    }

    /// Changes a line, and what all take up with it.
    @discardableResult
    private mutating func change<Result>(_ line: Line, _ body: (Line) -> Result) -> Result {
        taken -= line.connections(streams)
        let result = body(line)
        taken += line.connections(streams)
        if line.isEmpty { line.reset() }
        return result
    }

    /// Those of one origin.
    private final class Line {
        let origin: Origin
        /// How many were admitted and are not done.
        var running = 0
        /// Whether a connection takes more than one of them.
        var multiplexes = false
        /// How many wait.
        private(set) var waiting = 0
        /// Those who wait, in the order of their tickets; nil for one who gave up.
        private var entries: [(ticket: Int, element: Element?)] = []
        private var first = 0

        init(origin: Origin) {
            self.origin = origin
        }

        var isEmpty: Bool { running <= 0 && waiting == 0 }

        /// Forgets what was known of connections, which may all be closed by the time of the next request.
        func reset() {
            running = 0
            multiplexes = false
        }

        /// The ticket of the first; only where somebody waits.
        var firstTicket: Int { entries[first].ticket }

        func connections(_ streams: Int, adding more: Int = 0) -> Int {
            multiplexes ? (running + more + streams - 1) / streams : running + more
        }

        func append(_ element: Element, _ ticket: Int) {
            entries.append((ticket, element))
            waiting += 1
        }

        func popFirst() -> Element? {
            guard waiting > 0 else { return nil }
            defer {
                waiting -= 1
                skipGaps()
            }
            // Its place stays for a while; the element, which may own this queue, must not.
            return entries[first].element.take()
        }

        func remove(_ ticket: Int) -> Bool {
            var low = first
            var high = entries.count
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].ticket < ticket { low = middle + 1 } else { high = middle }
            }
            guard low < entries.count, entries[low].ticket == ticket, entries[low].element != nil else { return false }
            entries[low].element = nil
            waiting -= 1
            skipGaps()
            return true
        }

        /// Keeps `first` at somebody who waits, and the gaps fewer than those who do.
        private func skipGaps() {
            while first < entries.count, entries[first].element == nil { first += 1 }
            if entries.count > 32, entries.count > 2 * waiting {
                entries.removeSubrange(..<first)
                entries.removeAll { $0.element == nil }
                first = 0
            }
        }
    }
}

extension AdmissionQueue {
    /// Creates a queue with the limits of a pool.
    init(_ pool: ConnectionLimits) {
        self.init(
            perOrigin: pool.maximumConnectionsPerHost > 0 ? pool.maximumConnectionsPerHost : .max,
            total: pool.maximumConnections ?? .max, streams: pool.maximumStreamsPerConnection)
    }
}
