// SPDX-License-Identifier: MIT

/// An error of a wait for the activity of a ``StubServer`` that took too long.
public struct ActivityTimeout: Error, CustomStringConvertible {
    /// The limit of the wait.
    public let limit: Duration
    /// The activity until then.
    public let activity: StubServer.Activity

    /// The limit, the requests that arrived, and the number of connections.
    public var description: String {
        let requests = activity.requests.map { "\($0.method) \($0.target)" }.joined(separator: ", ")
        return """
            the awaited activity did not occur within \(limit); \
            requests: \(requests.isEmpty ? "none" : requests); \
            connections: \(activity.connectionsAccepted) accepted, \(activity.openConnections) open
            """
    }
}
