// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// The servers that segments are requested from: that of the download, and its mirrors.
///
/// | event | consequence for the server |
/// |---|---|
/// | it sends no ranges, another file, or a wrong piece | no further requests |
/// | it refuses a request, while other segments of it run | never more segments than those |
/// | it refuses a request, or a connection fails, three times without a byte between | no further requests |
/// | a segment of it is much slower than the others | a request only if no other server can take one |
package struct SegmentSources: Sendable {
    private var sources: [Source]

    /// A server.
    private struct Source {
        let url: URL
        var representation: Representation
        /// The maximum number of segments.
        var limit: Int
        var running = 0
        /// The number of failures since the last byte.
        var failures = 0
        var isUsable = true
        var isSlow = false
    }

    private static let mostFailures = 3

    /// Creates the list of servers.
    ///
    /// - Parameters:
    ///   - urls: The URLs of the file: that of the download first, which one segment has already been requested from.
    ///   - representation: The representation of the first response.
    ///   - limit: The maximum number of connections to one host.
    package init(_ urls: [URL], _ representation: Representation, limit: Int) {
        sources = urls.map { Source(url: $0, representation: representation, limit: max(1, limit)) }
        // Another server has validators of its own.
        for index in sources.indices.dropFirst() { sources[index].representation.validator = nil }
        if !sources.isEmpty { sources[0].running = 1 }
    }

    /// The number of segments that run.
    package var running: Int { sources.reduce(0) { $0 + $1.running } }

    /// The number of segments that can run at a time.
    package var limit: Int { sources.reduce(0) { $0 + ($1.isUsable ? $1.limit : $1.running) } }

    /// The number of the server for the next segment; `nil` if none can take one.
    package var next: Int? {
        let free = sources.indices.filter { sources[$0].isUsable && sources[$0].running < sources[$0].limit }
        return free.min { left, right in
            (sources[left].isSlow ? 1 : 0, sources[left].running, left)
                < (sources[right].isSlow ? 1 : 0, sources[right].running, right)
        }
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
    package mutating func accept(_ head: ResponseHead, from number: Int) {
        if sources[number].representation.validator == nil {
            sources[number].representation.validator = Representation.Validator(of: head)
        }
    }

    /// Notes that bytes have arrived.
    package mutating func receive(from number: Int) {
        sources[number].failures = 0
    }

    /// Notes a failure of a segment that has ended.
    package mutating func fail(_ number: Int) {
        sources[number].failures += 1
        if sources[number].failures >= Self.mostFailures { sources[number].isUsable = false }
    }

    /// Notes that a request was refused, after its segment has ended.
    package mutating func refuse(_ number: Int) {
        fail(number)
        if sources[number].running > 0 { sources[number].limit = sources[number].running }
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
