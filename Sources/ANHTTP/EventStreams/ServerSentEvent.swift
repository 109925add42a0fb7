// SPDX-License-Identifier: MIT

package import FoundationEssentials

/// A server-sent event, as defined in the WHATWG HTML standard, section “Server-sent events”.
///
/// ``ResponseBody/serverSentEvents`` yields the events of one response, and `SessionManager.events(for:)` those of a
/// source with reconnection. `decoded(as:)` decodes ``data``, for example from JSON. Comments and `retry:` lines are
/// not part of events.
public struct ServerSentEvent: Hashable, Sendable {
    /// The type of the event; `message` unless the server names another one with `event:`.
    public var type: String
    /// The data, which may be empty; several `data:` lines are joined by LF. An event without a `data:` line is not
    /// delivered.
    public var data: String
    /// The last event ID of the stream when the event ended; empty if the server has sent none.
    ///
    /// An event without `id:` has the ID of the events before it.
    public var id: String
    /// The session that received the event.
    package var session = EventSession()

    /// Creates an event, as for tests.
    ///
    /// - Parameters:
    ///   - type: The type of the event; `message` by default.
    ///   - data: The data, in which lines are separated by LF.
    ///   - id: The last event ID; empty, the default, for none.
    public init(type: String = "message", data: String, id: String = "") {
        self.type = type
        self.data = data
        self.id = id
    }
}

/// The settings of the session that received an event. Does not take part in comparisons of events.
package struct EventSession: Hashable, Sendable {
    /// The decoder of the session; `nil` for an event that no session received.
    package var jsonDecoder: JSONDecoder?

    /// Creates the value for an event of no session.
    package init() {}

    /// Returns `true`.
    package static func == (first: EventSession, second: EventSession) -> Bool { true }

    /// Hashes nothing.
    package func hash(into hasher: inout Hasher) {}
}
