// SPDX-License-Identifier: MIT

import ANHTTP
import Glibc

/// A queue that admits exchanges to libcurl within the limits on connections, first in, first out for each origin.
///
/// libcurl has a single pending queue for all hosts. When a connection becomes free, it tries one or two requests at
/// the head, and if these are for another host that is busy, the free connection stays unused. Exchanges that would
/// wait there wait here instead, in one line for each origin.
package struct AdmissionQueue<Element> {
    /// The origin of a URL: scheme, host and port.
    package typealias Origin = String

    private let perOrigin: Int
    private let total: Int
    private let streams: Int
    private var lines: [Origin: Line] = [:]
    /// The line accessed last, cached because it is usually the one accessed next.
    private var latest: Line?
    /// The number of lines at which empty ones are removed.
    private var lineLimit = 64
    private var nextTicket = 0
    /// The number of connections in use by all origins together.
    private var taken = 0
    /// The lines whose first element needs no further connection, or one, by its ticket. A line is in one at most, and in
    /// none if the origin has no capacity.
    private var needingNone = PriorityQueue<Line, Int>()
    private var needingOne = PriorityQueue<Line, Int>()

    /// Creates a queue that admits `perOrigin` exchanges to an origin and `total` to all origins together, or, if an
    /// origin multiplexes, `streams` exchanges for each connection.
    package init(perOrigin: Int, total: Int, streams: Int) {
        self.perOrigin = max(1, perOrigin)
        self.total = max(1, total)
        self.streams = min(max(1, streams), Int(Int32.max))
    }

    /// Adds an element; returns `nil` if it is admitted at once, otherwise its ticket in the queue.
    package mutating func enter(_ element: Element, _ origin: Origin) -> Int? {
        let line = line(of: origin)
        if line.waiting == 0, hasRoom(for: line) {
            change(line) { $0.running += 1 }
            return nil
        }
        let ticket = nextTicket
        nextTicket += 1
        change(line) { $0.append(element, ticket) }
        return ticket
    }

    /// Releases the capacity of an admitted element that has finished.
    package mutating func leave(_ origin: Origin) {
        change(line(of: origin)) { $0.running -= 1 }
    }

    /// Removes a waiting element by its ticket.
    package mutating func giveUp(_ ticket: Int, _ origin: Origin) {
        change(line(of: origin)) { $0.remove(ticket) }
    }

    /// Notes that the origin's connections carry several exchanges at the same time.
    package mutating func noteMultiplexing(_ origin: Origin) {
        let line = line(of: origin)
        guard !line.multiplexes, !line.isEmpty else { return }
        change(line) { $0.multiplexes = true }
    }

    /// Admits the element that has waited longest among those whose origins have capacity; returns `nil` if there is
    /// none.
    package mutating func next() -> Element? {
        let connecting = taken < total ? needingOne.firstElement : nil
        let candidates = [needingNone.firstElement, connecting].compactMap(\.self)
        guard let first = candidates.min(by: { $0.firstTicket < $1.firstTicket }) else { return nil }
        return change(first) { line in
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

    /// Adds a line for an origin. An empty line is kept for the next request, until there are many.
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

    /// Changes a line, and updates the number of connections in use and the line's place accordingly.
    @discardableResult
    private mutating func change<Result>(_ line: Line, _ body: (Line) -> Result) -> Result {
        taken -= line.connections(streams)
        let result = body(line)
        taken += line.connections(streams)
        if line.isEmpty { line.reset() }
        place(line)
        return result
    }

    private mutating func place(_ line: Line) {
        if line.needsConnection { needingOne.remove(line) } else { needingNone.remove(line) }
        let connections = line.connections(streams, adding: 1)
        guard line.waiting > 0, connections <= perOrigin else { return }
        line.needsConnection = connections > line.connections(streams)
        if line.needsConnection {
            needingOne.insert(line, at: line.firstTicket)
        } else {
            needingNone.insert(line, at: line.firstTicket)
        }
    }

    /// The elements of one origin.
    private final class Line: PriorityQueueElement {
        let origin: Origin
        /// The position in the queue that ``needsConnection`` tells. Maintained by ``PriorityQueue``.
        var queueIndex: Int?
        /// Whether the first waiting element needs a further connection. Valid in a queue.
        var needsConnection = false
        /// The number of admitted elements that have not finished.
        var running = 0
        /// Whether a connection carries several elements at the same time.
        var multiplexes = false
        /// The number of waiting elements.
        private(set) var waiting = 0
        /// The waiting elements in the order of their tickets; `nil` for one that was removed.
        private var entries: [(ticket: Int, element: Element?)] = []
        private var first = 0

        init(origin: Origin) {
            self.origin = origin
        }

        var isEmpty: Bool { running <= 0 && waiting == 0 }

        /// Resets what is known about the origin's connections, which may all be closed by the time of the next
        /// request.
        func reset() {
            running = 0
            multiplexes = false
        }

        /// The ticket of the first waiting element. There must be one.
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
            // The entry stays for a while, but must not retain the element, which may own this queue.
            return entries[first].element.take()
        }

        func remove(_ ticket: Int) {
            var low = first
            var high = entries.count
            while low < high {
                let middle = (low + high) / 2
                if entries[middle].ticket < ticket { low = middle + 1 } else { high = middle }
            }
            guard low < entries.count, entries[low].ticket == ticket, entries[low].element != nil else { return }
            entries[low].element = nil
            waiting -= 1
            skipGaps()
        }

        /// Advances `first` to a waiting element, and compacts `entries` if most of them are gaps.
        private func skipGaps() {
            while first < entries.count, entries[first].element == nil { first += 1 }
            if entries.count > 32, entries.count > 2 * waiting {
                entries.removeAll { $0.element == nil }
                first = 0
            }
        }
    }
}

extension AdmissionQueue {
    /// Creates a queue with the limits of a connection pool.
    init(_ limits: ConnectionLimits) {
        self.init(
            perOrigin: limits.maximumConnectionsPerHost > 0 ? limits.maximumConnectionsPerHost : .max,
            total: limits.maximumConnections ?? .max, streams: ConnectionLimits.maximumStreams)
    }
}

/// A cache of the latest origin, so that successive requests to one origin share a string, which costs no allocation
/// and is compared with itself at once.
package struct OriginCache {
    private var latest = ""

    /// Creates an empty cache.
    package init() {}

    /// Returns the scheme, host and port of an absolute URL: its text up to the path or the query.
    package mutating func origin(of url: String) -> String {
        var url = url
        return url.withUTF8 { bytes in
            if unsafe !isLatest(bytes) {
                var slashes = 0
                let end = unsafe bytes.firstIndex { byte in
                    if byte == UInt8(ascii: "/") { slashes += 1 }
                    return slashes == 3 || byte == UInt8(ascii: "?")
                }
                latest = unsafe String(decoding: bytes[..<(end ?? bytes.count)], as: UTF8.self)
            }
            return latest
        }
    }

    /// Whether a URL has the latest origin and a path or a query.
    private mutating func isLatest(_ url: UnsafeBufferPointer<UInt8>) -> Bool {
        latest.withUTF8 { origin in
            guard let start = origin.baseAddress, let other = url.baseAddress, url.count > origin.count,
                unsafe memcmp(other, start, origin.count) == 0
            else { return false }
            let next = unsafe url[origin.count]
            return next == UInt8(ascii: "/") || next == UInt8(ascii: "?")
        }
    }
}
