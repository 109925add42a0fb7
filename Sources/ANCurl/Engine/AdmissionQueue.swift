// SPDX-License-Identifier: MIT

import ANHTTP
import Glibc

/// How an exchange uses connections.
package enum ConnectionUse: CaseIterable, Sendable {
    /// It ends soon, and may share a connection of HTTP/2 or HTTP/3 with others at the same time.
    case request
    /// It ends soon, and has a connection to itself, as over HTTP/1.1.
    case exclusiveRequest
    /// It may go on for long, as that of an event source, and may share a connection.
    case stream
    /// It may go on for long, and has a connection to itself, as a WebSocket.
    case exclusiveStream

    init(isLongLived: Bool, _ sharing: ConnectionSharing) {
        self =
            if sharing == .multiplexed { isLongLived ? .stream : .request } else {
                isLongLived ? .exclusiveStream : .exclusiveRequest
            }
    }
}

/// A queue that admits exchanges to libcurl within the limits on connections, first in, first out for each origin and
/// use.
///
/// libcurl has a single pending queue for all hosts. When a connection becomes free, it tries one or two requests at
/// the head, and if these are for another host that is busy, the free connection stays unused. Exchanges that would
/// wait there wait here instead, in one line for each origin and use.
///
/// The connections of an origin are those of requests and those of long-lived exchanges, each with a limit of its own,
/// so that requests do not wait for the end of a WebSocket or an event stream:
///
/// | | of requests | of long-lived exchanges |
/// |---|---|---|
/// | one exchange at a time on a connection | requests | streams |
/// | several: the origin multiplexes | requests and streams that share them, as many on each as there may be; exclusive requests | exclusive streams |
///
/// The limit for all origins together applies to the sum.
///
/// A connection that takes no new requests, because it may be dead, is too old or is about to be closed, is one of
/// long-lived exchanges if it carries any, otherwise one of requests. The number of exchanges on each other one is limited
/// by its server, too.
///
/// Exchanges that share a connection pass those that wait for a connection of their own, and keep it in use. They are not
/// held back: one of them may be waited for by another, or last as long as an event stream.
package struct AdmissionQueue<Element> {
    /// The origin of a URL: scheme, host and port.
    package typealias Origin = String

    package static var maximumOvertakes: Int { 4 }

    private let perOrigin: Int
    private let longLivedPerOrigin: Int
    private let total: Int
    private let streams: Int
    private var hosts: [Origin: Host] = [:]
    /// The host accessed last, cached because it is usually the one accessed next.
    private var latest: Host?
    /// The number of hosts at which empty ones are removed.
    private var hostLimit = 64
    private var nextTicket = 0
    /// The number of connections in use by all origins together.
    private var taken = 0
    /// The number of those that are in use by long-lived exchanges.
    package private(set) var longLived = 0
    /// The lines whose first element needs no further connection, or one, by its ticket. A line is in one at most, and in
    /// none if the origin has no capacity.
    private var needingNone = PriorityQueue<Line, Int>()
    private var needingOne = PriorityQueue<Line, Int>()

    /// Creates a queue that admits `perOrigin` requests and `longLivedPerOrigin` other exchanges to an origin, and
    /// `total` exchanges to all origins together, or, if an origin multiplexes, up to `streams` exchanges for each connection.
    package init(perOrigin: Int, longLivedPerOrigin: Int, total: Int, streams: Int) {
        self.perOrigin = max(1, perOrigin)
        self.longLivedPerOrigin = max(1, longLivedPerOrigin)
        self.total = max(1, total)
        self.streams = min(max(1, streams), Int(Int32.max))
    }

    /// Adds an element; returns `nil` if it is admitted at once, otherwise its ticket in the queue.
    package mutating func enter(_ element: Element, _ use: ConnectionUse, _ origin: Origin) -> Int? {
        let host = host(of: origin)
        if first == nil, let more = connections(for: use, of: host), more == 0 || taken < total {
            change(host) { $0.running[use] += 1 }
            return nil
        }
        let ticket = nextTicket
        nextTicket += 1
        change(host) { $0.line(for: use).append(element, ticket) }
        return ticket
    }

    /// Releases the capacity of an admitted element that has finished.
    ///
    /// - Parameter loop: The loop of its connection if that takes no new elements.
    package mutating func leave(_ use: ConnectionUse, _ origin: Origin, drainingOn loop: Int? = nil) {
        change(host(of: origin)) { host in
            host.running[use] -= 1
            if let loop { host.draining[loop]?.remove(use) }
        }
    }

    /// Removes a waiting element by its ticket.
    package mutating func giveUp(_ ticket: Int, _ use: ConnectionUse, _ origin: Origin) {
        change(host(of: origin)) { $0.line(for: use).remove(ticket) }
    }

    /// Notes that the origin's connections carry several exchanges at the same time, as many as their server allows.
    package mutating func noteMultiplexing(_ origin: Origin, streams: Int = .max) {
        note(min(max(1, streams), self.streams), origin)
    }

    /// Notes that the origin's new connections carry one exchange at a time. Returns whether that is new.
    @discardableResult
    package mutating func noteSingleExchanges(_ origin: Origin) -> Bool { note(nil, origin) }

    @discardableResult
    private mutating func note(_ streams: Int?, _ origin: Origin) -> Bool {
        let host = host(of: origin)
        guard host.streams != streams, !host.isEmpty else { return false }
        change(host) { $0.streams = streams }
        return true
    }

    /// Notes all connections of the origin on a loop that take no new exchanges.
    package mutating func note(_ draining: DrainingConnections?, of origin: Origin, on loop: Int) {
        let host = host(of: origin)
        if !host.isEmpty { change(host) { $0.draining[loop] = draining } }
    }

    /// Admits the element that has waited longest among those for which there is capacity, or a preferred one of the same
    /// line; returns `nil` if there is none. An element is overtaken at most ``maximumOvertakes`` times.
    package mutating func next(preferring isPreferred: ((Element) -> Bool)? = nil) -> Element? {
        guard let line = first else { return nil }
        return change(line.host) { host in
            host.running[line.use] += 1
            return line.pop(preferring: isPreferred)
        }
    }

    /// The line whose first element is the next to be admitted; `nil` if there is no capacity for any.
    private var first: Line? {
        let connecting = taken < total ? needingOne.firstElement : nil
        guard let line = needingNone.firstElement else { return connecting }
        guard let connecting, connecting.firstTicket < line.firstTicket else { return line }
        return connecting
    }

    private mutating func host(of origin: Origin) -> Host {
        if let latest, latest.origin == origin { return latest }
        let host = hosts[origin] ?? addHost(origin)
        latest = host
        return host
    }

    /// Adds a host for an origin. An empty host is kept for the next request, until there are many.
    private mutating func addHost(_ origin: Origin) -> Host {
        if hosts.count >= hostLimit {
            hosts = hosts.filter { !$0.value.isEmpty }
            hostLimit = max(64, 2 * hosts.count)
        }
        let host = Host(origin: origin)
        hosts[origin] = host
        return host
    }

    /// Returns the number of further connections that an element needs; `nil` if the origin has no capacity for them.
    private func connections(for use: ConnectionUse, of host: Host) -> Int? {
        let now = host.connections()
        let then = host.connections(adding: use)
        let isLongLived = then.longLived > now.longLived
        guard isLongLived ? then.longLived <= longLivedPerOrigin : then.requests <= perOrigin else { return nil }
        return then.count - now.count
    }

    /// Changes a host, and updates the number of connections in use and the places of its lines accordingly.
    @discardableResult
    private mutating func change<Result>(_ host: Host, _ body: (Host) -> Result) -> Result {
        let before = host.connections()
        let result = body(host)
        if host.isEmpty { (host.streams, host.draining) = (nil, [:]) }
        let after = host.connections()
        taken += after.count - before.count
        longLived += after.longLived - before.longLived
        for line in host.lines { place(line) }
        return result
    }

    private mutating func place(_ line: Line) {
        if line.needsConnection { needingOne.remove(line) } else { needingNone.remove(line) }
        guard line.waiting > 0, let more = connections(for: line.use, of: line.host) else { return }
        line.needsConnection = more > 0
        if line.needsConnection {
            needingOne.insert(line, at: line.firstTicket)
        } else {
            needingNone.insert(line, at: line.firstTicket)
        }
    }

    /// The elements of one origin. A lock protects it, so that accesses are not checked for
    /// exclusivity at run time; see ``LoopState``.
    private final class Host {
        let origin: Origin
        /// The admitted elements that have not finished.
        @safe @exclusivity(unchecked) var running = ElementCounts()
        /// The number of elements that a connection carries at the same time; `nil` if it is one, or unknown. It is unknown
        /// again once the host is empty: all its connections may be closed by the time of the next request.
        @safe @exclusivity(unchecked) var streams: Int?
        /// The connections that take no new elements, by loop.
        @safe @exclusivity(unchecked) var draining: [Int: DrainingConnections] = [:]
        /// The lines in which elements have waited, at most one for each use.
        @safe @exclusivity(unchecked) private(set) var lines: [Line] = []

        init(origin: Origin) {
            self.origin = origin
        }

        var isEmpty: Bool { running.count == 0 && lines.allSatisfy { $0.waiting == 0 } }

        func line(for use: ConnectionUse) -> Line {
            if let line = lines.first(where: { $0.use == use }) { return line }
            let line = Line(of: self, for: use)
            lines.append(line)
            return line
        }

        /// Returns the connections in use, or those with one more element.
        func connections(adding use: ConnectionUse? = nil) -> ConnectionCounts {
            var (elements, connections) = (running, ConnectionCounts())
            if !draining.isEmpty {
                for other in draining.values {
                    for use in ConnectionUse.allCases { elements[use] -= min(elements[use], other.elements[use]) }
                    connections.requests += other.connections.requests
                    connections.longLived += other.connections.longLived
                }
            }
            if let use { elements[use] += 1 }
            connections.requests += elements.exclusiveRequests
            connections.longLived += elements.exclusiveStreams
            if let streams {
                connections.requests += (elements.requests + elements.streams + streams - 1) / streams
            } else {
                connections.requests += elements.requests
                connections.longLived += elements.streams
            }
            return connections
        }
    }

    /// The elements of one origin that wait for the same use.
    private final class Line: PriorityQueueElement {
        /// The host, which owns this line.
        unowned let host: Host
        let use: ConnectionUse
        /// The position in the queue that ``needsConnection`` tells. Maintained by ``PriorityQueue``.
        var queueIndex: Int?
        /// Whether the first waiting element needs a further connection. Valid in a queue.
        var needsConnection = false
        /// The number of waiting elements.
        private(set) var waiting = 0
        /// The waiting elements in the order of their tickets; `nil` for one that was removed.
        private var entries: [Entry] = []
        private var first = 0

        private struct Entry {
            let ticket: Int
            var element: Element?
            /// The number of later elements that were admitted before this one.
            var overtakes = 0
        }

        init(of host: Host, for use: ConnectionUse) {
            self.host = host
            self.use = use
        }

        /// The ticket of the first waiting element. There must be one.
        var firstTicket: Int { entries[first].ticket }

        func append(_ element: Element, _ ticket: Int) {
            entries.append(Entry(ticket: ticket, element: element))
            waiting += 1
        }

        func pop(preferring isPreferred: ((Element) -> Bool)?) -> Element? {
            guard waiting > 0 else { return nil }
            defer {
                waiting -= 1
                skipGaps()
            }
            var index = first
            if let isPreferred {
                let reach = entries[first...].prefix(4 * AdmissionQueue.maximumOvertakes)
                let mayWait = reach.prefix { $0.overtakes < AdmissionQueue.maximumOvertakes }
                index = mayWait.firstIndex { $0.element.map(isPreferred) ?? false } ?? first
            }
            for overtaken in first..<index { entries[overtaken].overtakes += 1 }
            // The entry stays for a while, but must not retain the element, which may own this queue.
            return entries[index].element.take()
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

/// Connections of an origin that take no new exchanges, with the exchanges on them.
package struct DrainingConnections: Equatable, Sendable {
    fileprivate var elements = ElementCounts()
    fileprivate var connections = ConnectionCounts()

    /// Creates a value for no connections.
    package init() {}

    /// Adds a connection with the uses of its exchanges.
    package mutating func add(_ uses: [ConnectionUse]) {
        for use in uses { elements[use] += 1 }
        if uses.contains(where: { $0 == .stream || $0 == .exclusiveStream }) {
            connections.longLived += 1
        } else {
            connections.requests += 1
        }
    }

    /// Removes an exchange that has finished. Its connection remains.
    fileprivate mutating func remove(_ use: ConnectionUse) { elements[use] -= min(elements[use], 1) }
}

/// The numbers of connections of requests and of long-lived exchanges.
private struct ConnectionCounts: Equatable {
    var requests = 0
    var longLived = 0

    var count: Int { requests + longLived }
}

/// The numbers of elements by their use.
private struct ElementCounts: Equatable {
    private(set) var requests = 0
    private(set) var exclusiveRequests = 0
    private(set) var streams = 0
    private(set) var exclusiveStreams = 0

    var count: Int { requests + exclusiveRequests + streams + exclusiveStreams }

    subscript(_ use: ConnectionUse) -> Int {
        get {
            switch use {
            case .request: requests
            case .exclusiveRequest: exclusiveRequests
            case .stream: streams
            case .exclusiveStream: exclusiveStreams
            }
        }
        set {
            switch use {
            case .request: requests = newValue
            case .exclusiveRequest: exclusiveRequests = newValue
            case .stream: streams = newValue
            case .exclusiveStream: exclusiveStreams = newValue
            }
        }
    }
}

/// A queue does not hand out its objects, so that they are protected together with it, by a lock.
extension AdmissionQueue: @unchecked Sendable where Element: Sendable {}

extension AdmissionQueue {
    /// Creates a queue with the limits of a connection pool.
    init(_ limits: ConnectionLimits) {
        self.init(
            perOrigin: limits.maximumConnectionsPerHost > 0 ? limits.maximumConnectionsPerHost : .max,
            longLivedPerOrigin: limits.maximumLongLivedPerHost > 0 ? limits.maximumLongLivedPerHost : .max,
            total: limits.maximumConnections ?? .max, streams: ConnectionLimits.maximumStreams)
    }
}

/// A cache of the latest origin, so that successive requests to one origin share a string, which costs no allocation
/// and is compared with itself at once.
package struct OriginCache {
    private var latest = ""
    /// The beginning of the URL that has the latest origin, up to the path, the query or the fragment.
    private var beginning = ""

    /// Creates an empty cache.
    package init() {}

    /// Returns the scheme, host and port of an absolute URL in one spelling: in lower case, and without the user
    /// information and a port that is the scheme's own.
    package mutating func origin(of url: String) -> String {
        var url = url
        return url.withUTF8 { bytes in
            if unsafe !isLatest(bytes) {
                var slashes = 0
                let end = unsafe bytes.firstIndex { byte in
                    if byte == UInt8(ascii: "/") { slashes += 1 }
                    return slashes == 3 || Self.ends(byte)
                }
                beginning = unsafe String(decoding: bytes[..<(end ?? bytes.count)], as: UTF8.self)
                latest = Self.normalized(beginning)
            }
            return latest
        }
    }

    private static func normalized(_ beginning: String) -> String {
        let text = beginning.lowercased()
        guard let slash = text.unicodeScalars.lastIndex(of: "/") else { return text }
        let scheme = text[...slash]
        let host = text[slash...].dropFirst().split(at: "@", omittingEmptySubsequences: false).last ?? ""
        let port = scheme.hasPrefix("https:") || scheme.hasPrefix("wss:") ? ":443" : ":80"
        return String(scheme + (host.hasSuffix(port) ? host.dropLast(port.count) : host))
    }

    /// Whether a URL has the latest beginning and a path, a query or a fragment.
    private mutating func isLatest(_ url: UnsafeBufferPointer<UInt8>) -> Bool {
        beginning.withUTF8 { beginning in
            guard let start = beginning.baseAddress, let other = url.baseAddress, url.count > beginning.count,
                unsafe memcmp(other, start, beginning.count) == 0
            else { return false }
            let next = unsafe url[beginning.count]
            return next == UInt8(ascii: "/") || Self.ends(next)
        }
    }

    private static func ends(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") }
}
