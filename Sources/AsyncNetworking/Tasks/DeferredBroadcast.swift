// SPDX-License-Identifier: MIT

/// A ``Broadcast`` that is made when somebody asks for it. Most are never asked for: until then there are only the values.
///
/// It is a part of what its owner guards.
package struct DeferredBroadcast<Element: Sendable>: Sendable {
    private var values: BroadcastValues<Element>
    private var made: Broadcast<Element>?

    /// Creates a broadcast without a value.
    package init(keeping history: BroadcastHistory = .newest) {
        values = BroadcastValues(keeping: history)
    }

    /// The broadcast.
    package var broadcast: Broadcast<Element> {
        mutating get {
            if let made { return made }
            let broadcast = Broadcast(values)
            made = broadcast
            values = BroadcastValues()
            return broadcast
        }
    }

    /// The latest value.
    package var latest: Element? { made.map(\.latest) ?? values.latest }

    /// All that is kept, the oldest first.
    var kept: [Element] { made.map(\.kept) ?? values.kept }

    /// Publishes a value, if there is one.
    package mutating func send(_ element: Element?) {
        guard let element else { return }
        if let made { made.send(element) } else { _ = values.send(element) }
    }

    /// Ends the stream.
    package mutating func finish() {
        if let made { made.finish() } else { values.finish() }
    }
}
