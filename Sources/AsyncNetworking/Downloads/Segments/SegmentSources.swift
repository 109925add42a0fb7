// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// The servers that segments are requested from: that of the download, and its mirrors.
///
/// | event | consequence for the server |
/// |---|---|
/// | it sends no ranges, another file, or a wrong piece | no further requests |
/// | it is overloaded, while other segments of its host run | never more segments of the host than those |
/// | it refuses a request, or a connection fails, three times without a byte between | no further requests |
/// | it sends fewer bytes than requested, more often than ``FollowUpLimit`` permits | no further requests |
/// | a segment of it is much slower than the others | a request only if no other server can take one |
package struct SegmentSources: Sendable {
    private var sources: [Source]
    /// The maximum numbers of segments of the hosts, which several servers may share.
    private var limits: [Origin: Int]

    /// A server.
    private struct Source {
        let url: URL
        let origin: Origin
        var representation: Representation
        var running = 0
        /// The number of failures since the last byte.
        var failures = 0
        var isUsable = true
        /// Whether it has sent a range of the file.
        var hasAnswered = false
        var isSlow = false
        /// The number of bytes that have arrived.
        var received: Int64 = 0
        /// The limit on responses with fewer bytes than requested.
        var parts = FollowUpLimit()
    }

    private static let mostFailures = 3

    /// Creates the list of servers.
    ///
    /// - Parameters:
    ///   - urls: The URLs of the file: that of the download first, which one segment has already been requested from.
    ///   - representation: The representation of the first response.
    ///   - limit: The maximum number of connections to one host.
    package init(_ urls: [URL], _ representation: Representation, limit: Int) {
        sources = urls.map { Source(url: $0, origin: Origin($0), representation: representation) }
        limits = Dictionary(sources.map { ($0.origin, max(1, limit)) }) { first, _ in first }
        // Another server has validators of its own.
        for index in sources.indices.dropFirst() { sources[index].representation.validator = nil }
        if !sources.isEmpty { (sources[0].running, sources[0].hasAnswered) = (1, true) }
    }

    /// The number of segments that run.
    package var running: Int { sources.reduce(0) { $0 + $1.running } }

    /// The number of segments that can run at a time.
    package var limit: Int {
        limits.reduce(0) { sum, host in
            let isUsable = sources.contains { $0.origin == host.key && $0.isUsable }
            return sum + (isUsable ? host.value : running(at: host.key))
        }
    }

    /// The number of the server for the next segment; `nil` if none can take one.
    package var next: Int? {
        let free = sources.indices.filter { number in
            let origin = sources[number].origin
            return sources[number].isUsable && running(at: origin) < limits[origin, default: 0]
        }
        return free.min { left, right in
            (sources[left].isSlow ? 1 : 0, sources[left].running, left)
                < (sources[right].isSlow ? 1 : 0, sources[right].running, right)
        }
    }

    /// Whether a server may be asked for a segment now or after the end of another one.
    package var isUsable: Bool { sources.contains(where: \.isUsable) }

    private func running(at origin: Origin) -> Int {
        sources.reduce(0) { $0 + ($1.origin == origin ? $1.running : 0) }
    }

    package func url(_ number: Int) -> URL { sources[number].url }

    /// The representation that the responses of a server must have.
    package func representation(_ number: Int) -> Representation { sources[number].representation }

    package mutating func begin(_ number: Int) {
        sources[number].running += 1
    }

    package mutating func end(_ number: Int) {
        sources[number].running -= 1
    }

    /// Notes a response with a range of the file.
    ///
    /// - Parameter isShort: Whether it ends before the requested range does.
    package mutating func accept(_ head: ResponseHead, from number: Int, isShort: Bool = false) {
        sources[number].hasAnswered = true
        if isShort { countPart(of: number) }
        sources[number].representation.learn(from: head, total: nil)
        if sources[number].representation.validator == nil {
            sources[number].representation.validator = Representation.Validator(of: head)
        }
    }

    /// Notes that bytes have arrived.
    package mutating func receive(_ count: Int, from number: Int) {
        sources[number].failures = 0
        sources[number].received += Int64(count)
    }

    /// Notes a failure of a segment that has ended.
    ///
    /// - Parameter hasBytes: Whether some of its bytes have arrived.
    package mutating func fail(_ number: Int, hasBytes: Bool = false) {
        if hasBytes { return countPart(of: number) }
        sources[number].failures += 1
        if sources[number].failures >= Self.mostFailures { sources[number].isUsable = false }
    }

    /// Notes that a request was refused, after its segment has ended.
    ///
    /// - Parameter isOverload: Whether the status or a failed connection suggests that the host is overloaded. Any other
    ///   refusal does so only if the server has sent ranges before: otherwise its URL may be wrong.
    package mutating func refuse(_ number: Int, isOverload: Bool) {
        fail(number)
        guard isOverload || sources[number].hasAnswered else { return }
        let (origin, others) = (sources[number].origin, running(at: sources[number].origin))
        if others > 0 { limits[origin] = others }
    }

    private mutating func countPart(of number: Int) {
        if !sources[number].parts.permitsNext(after: sources[number].received) { exclude(number) }
    }

    /// Notes that a server must not be used further.
    package mutating func exclude(_ number: Int) {
        sources[number].isUsable = false
    }

    /// Notes that a segment of a server was much slower than the others.
    package mutating func avoid(_ number: Int) {
        sources[number].isSlow = true
    }
}
