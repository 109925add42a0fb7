// SPDX-License-Identifier: MIT

/// A ``Broadcast`` that is created on first use. Most are never used, and store only their values.
///
/// It must be guarded by its owner's lock.
package struct DeferredBroadcast<Element: Sendable>: Sendable {
    private var values: BroadcastValues<Element>
    private var made: Broadcast<Element>?

    /// Creates a broadcast without values.
    package init(keeping history: BroadcastHistory = .newest) {
        values = BroadcastValues(keeping: history)
    }

    /// The broadcast, created on first access.
    package var broadcast: Broadcast<Element> {
        mutating get {
            if let made { return made }
            let broadcast = Broadcast(values)
            made = broadcast
            values = BroadcastValues()
            return broadcast
        }
    }

    /// The newest value, or `nil` before the first one.
    package var latest: Element? { made.map(\.latest) ?? values.latest }

    /// The kept values, oldest first.
    var kept: [Element] { made.map(\.kept) ?? values.kept }

    /// Sends a value; `nil` is ignored.
    package mutating func send(_ element: Element?) {
        guard let element else { return }
        if let made { made.send(element) } else { _ = values.send(element) }
    }

    /// Ends the stream.
    package mutating func finish() {
        if let made { made.finish() } else { values.finish() }
    }
}
