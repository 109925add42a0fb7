// SPDX-License-Identifier: MIT

import ANHTTP
package import FoundationEssentials

/// The known alternative services of origins, and whether they work.
///
/// An alternative is *unproven* until a response was received over it. Meanwhile one request at a time tries it, and the
/// others use the origin's own connection. One that has failed is *broken* for five minutes, twice as long after each
/// further failure, and at most a day; after that it is unproven again.
package struct AlternativeServiceTable {
    /// The number of origins that servers can add.
    package static let maximumCount = 5_000
    /// The time in seconds after which another request may try an unproven alternative although the result of the last
    /// one is not known.
    package static let maximumTrial: TimeInterval = 60
    /// The time in seconds for which an alternative that failed for the first time is not used.
    package static let shortestBreak: TimeInterval = 300
    /// The maximum time in seconds for which an alternative that failed is not used.
    package static let longestBreak: TimeInterval = 86_400

    private var entries: [Key: Entry] = [:]

    /// The host and the port of an https origin.
    package struct Key: Hashable {
        package let host: String
        package let port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    private struct Entry {
        var service: AlternativeService
        var state = State.unproven
        /// The number of failures since the alternative worked last.
        var failures = 0
    }

    private enum State: Equatable {
        /// No request has used the alternative since it was learned or since it was broken.
        case unproven
        /// A request tries the alternative; another one may, after the given time.
        case onTrial(until: Date)
        /// A response was received over the alternative.
        case proven
        /// The alternative has failed and is not used until the given time.
        case broken(until: Date)
    }

    /// Creates an empty table.
    package init() {}

    /// Whether there are no alternatives, not even expired ones.
    package var isEmpty: Bool { entries.isEmpty }

    /// Returns the alternatives that have not expired, sorted by host and port.
    package func current(at now: Date) -> [AlternativeService] {
        entries.values.map(\.service).filter { $0.expiry > now }.sorted { ($0.host, $0.port) < ($1.host, $1.port) }
    }

    /// Adds or replaces the alternative of an origin. What is known about the same port of it is kept. If there is no
    /// room, the alternative that would be the first to expire is removed.
    package mutating func set(_ service: AlternativeService) {
        let key = Key(host: service.host, port: service.port)
        if entries[key]?.service.alternativePort == service.alternativePort {
            entries[key]?.service = service
            return
        }
        if entries.count >= Self.maximumCount, entries[key] == nil,
            let first = entries.min(by: { $0.value.service.expiry < $1.value.service.expiry })
        {
            entries[first.key] = nil
        }
        entries[key] = Entry(service: service)
    }

    /// Applies a response's field: the first alternative that is HTTP/3 on the same host replaces that of the origin,
    /// and an origin without one is removed.
    ///
    /// - Parameter age: The number of seconds since the response was generated.
    package mutating func note(_ field: AlternativeServiceField, from key: Key, age: Int64, at now: Date) {
        guard case .alternatives(let alternatives) = field,
            let usable = alternatives.first(where: {
                $0.protocolID == "h3" && ($0.host.isEmpty || HostName($0.host).zonedText == key.host)
                    && $0.maximumAge > age
            })
        else {
            entries[key] = nil
            return
        }
        set(
            AlternativeService(
                host: key.host, port: key.port, alternativePort: usable.port,
                expiry: now.addingTimeInterval(Double(usable.maximumAge) - Double(age)), persists: usable.persists))
    }

    /// Removes the alternative of an origin, if any.
    package mutating func remove(_ key: Key) {
        entries[key] = nil
    }

    /// Removes the alternatives of all origins with a host.
    ///
    /// - Parameter host: The name in lower case, without a trailing dot.
    package mutating func remove(host: String) {
        entries = entries.filter { $0.key.host != host }
    }

    // MARK: Use

    /// Returns the port of the alternative that a request should use, and whether it is proven; `nil` if the request
    /// should use the origin's own connection. An unproven alternative is then on trial.
    package mutating func take(for key: Key, at now: Date) -> (port: Int, isProven: Bool)? {
        guard let entry = entries[key] else { return nil }
        guard entry.service.expiry > now else {
            entries[key] = nil
            return nil
        }
        switch entry.state {
        case .proven: return (entry.service.alternativePort, true)
        case .broken(let end) where end > now, .onTrial(let end) where end > now: return nil
        case .broken, .onTrial, .unproven:
            entries[key]?.state = .onTrial(until: now.addingTimeInterval(Self.maximumTrial))
            return (entry.service.alternativePort, false)
        }
    }

    /// Notes whether an alternative worked. One that was replaced by another port meanwhile is ignored, and so is a
    /// failure while the alternative is broken: requests that were sent together fail together.
    package mutating func noteUse(of port: Int, for key: Key, hasWorked: Bool, at now: Date) {
        guard var entry = entries[key], entry.service.alternativePort == port else { return }
        if hasWorked {
            entry.state = .proven
            entry.failures = 0
        } else {
            if case .broken(let end) = entry.state, end > now { return }
            let time = min(Self.shortestBreak * Double(1 << min(entry.failures, 20)), Self.longestBreak)
            entry.state = .broken(until: now.addingTimeInterval(time))
            entry.failures += 1
        }
        entries[key] = entry
    }

    /// Ends a trial without a result: the request was cancelled, or failed for another reason.
    package mutating func endTrial(of port: Int, for key: Key) {
        guard let entry = entries[key], entry.service.alternativePort == port, case .onTrial = entry.state else {
            return
        }
        entries[key]?.state = .unproven
    }
}
