// SPDX-License-Identifier: MIT

extension Request {
    /// The clock of the session that sends the request, for a transport that keeps time by it; `nil` if that is the
    /// system's.
    package var sessionClock: (any Clock<Duration>)? {
        get { self[SessionClock.self] }
        set { self[SessionClock.self] = newValue }
    }
}

private enum SessionClock: RequestAttribute {
    static var defaultValue: (any Clock<Duration>)? { nil }
}
