// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The error thrown when a wait for the activity of a ``StubServer`` exceeds its time limit, as by
/// ``StubServer/requests(count:within:)``.
public struct ActivityTimeout: LocalizedError, CustomStringConvertible {
    /// The time limit that was exceeded.
    public let limit: Duration
    /// The activity of the server when the limit was reached.
    public let activity: StubServer.Activity

    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A text with the limit, the methods and targets of the requests that arrived, and the numbers of accepted and
    /// open connections.
    public var description: String {
        let requests = activity.requests.map { "\($0.method) \($0.target)" }.joined(separator: ", ")
        return """
            the awaited activity did not occur within \(limit); \
            requests: \(requests.isEmpty ? "none" : requests); \
            connections: \(activity.connectionsAccepted) accepted, \(activity.openConnections) open
            """
    }
}
