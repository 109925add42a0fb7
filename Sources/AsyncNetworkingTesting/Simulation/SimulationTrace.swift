// SPDX-License-Identifier: MIT

import ANSystem

/// The events of a simulated world, each in a lane: that of the test, of a call, or of an exchange.
final class SimulationTrace: Sendable {
    private let state = Lock(State())
    private let now: @Sendable () -> Int64

    init(now: @escaping @Sendable () -> Int64) {
        self.now = now
    }

    struct Event {
        let time: Int64
        let lane: Int
        let mark: Character
        let text: String
    }

    /// Adds an event to a lane, which is created with its first event.
    ///
    /// - Parameter isOpen: Whether the lane has begun and not ended after the event; `nil` does not change that.
    func add(_ lane: String, _ mark: Character, _ text: String, isOpen: Bool? = nil) {
        let time = now()
        state.withLock { state in
            let index = state.index(of: lane)
            state.events.append(Event(time: time, lane: index, mark: mark, text: text))
            switch isOpen {
            case true?: state.open[index] = text
            case false?: state.open[index] = nil
            case nil: break
            }
        }
    }

    /// The lanes that have begun and not ended, with the texts of their beginnings.
    var openLanes: [String] {
        state.withLock { state in
            state.open.sorted { $0.key < $1.key }.map { "\(state.lanes[$0.key]) \($0.value)" }
        }
    }

    /// The events, one in each line, with a digest of the order of the tasks.
    func text(_ schedule: (steps: Int, digest: UInt64)) -> String {
        state.withLock { state in
            state.events.map { "\(Self.seconds($0.time)) \(state.lanes[$0.lane]) \($0.mark) \($0.text)\n" }.joined()
                + "\(schedule.steps) steps, \(String(schedule.digest, radix: 16))\n"
        }
    }

    /// A marble diagram: a line for each lane, a column for each event, and a legend.
    var diagram: String {
        state.withLock { state in
            let hidden = max(0, state.events.count - Self.maximumColumns)
            let events = state.events.dropFirst(hidden)
            let width = state.lanes.map(\.count).max() ?? 0
            var lines: [String] = hidden > 0 ? ["The first \(hidden) events are left out."] : []
            for lane in state.lanes.indices {
                let own = events.indices.filter { events[$0].lane == lane }
                guard let first = own.first, let last = own.last else { continue }
                let end = state.open[lane] == nil ? last : events.endIndex - 1
                let row = events.indices.prefix { $0 <= end }.map { index -> Character in
                    let event = events[index]
                    if event.lane == lane { return event.mark }
                    return index < first ? " " : "─"
                }
                lines.append(Self.padded(state.lanes[lane], to: width) + " " + String(row))
            }
            for event in events {
                let lane = Self.padded(state.lanes[event.lane], to: width)
                lines.append("\(Self.seconds(event.time)) \(lane) \(event.mark) \(event.text)")
            }
            return lines.joined(separator: "\n")
        }
    }

    private static let maximumColumns = 100

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    /// The seconds with milliseconds, with at least four digits before the point.
    private static func seconds(_ nanoseconds: Int64) -> String {
        let (seconds, rest) = (nanoseconds / 1_000_000_000).quotientAndRest(nanoseconds)
        return String(repeating: " ", count: max(0, 5 - "\(seconds)".count)) + "\(seconds).\(rest)"
    }

    private struct State {
        var lanes: [String] = []
        var events: [Event] = []
        /// The texts with which the lanes that have not ended began.
        var open: [Int: String] = [:]
        private var indices: [String: Int] = [:]

        mutating func index(of lane: String) -> Int {
            if let index = indices[lane] { return index }
            indices[lane] = lanes.count
            lanes.append(lane)
            return lanes.count - 1
        }
    }
}

extension Int64 {
    /// Returns these whole seconds with the milliseconds of a time in three digits.
    fileprivate func quotientAndRest(_ nanoseconds: Int64) -> (Int64, String) {
        let digits = "\(nanoseconds % 1_000_000_000 / 1_000_000)"
        return (self, String(repeating: "0", count: 3 - digits.count) + digits)
    }
}
