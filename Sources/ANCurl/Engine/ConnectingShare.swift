// SPDX-License-Identifier: MIT

package import ANSystem

/// The part of a loop's turns that belongs to connections that are being made.
///
/// A step of a TLS handshake computes for up to a millisecond, so that many new connections would hold up the exchanges on
/// all others. Descriptors of TCP connections that are being made are handled last, and for ``limit``; the rest follows in the
/// next turns, each in its turn.
package struct ConnectingShare {
    /// The time after which no other descriptor is handled in a turn.
    package static let limit = Duration.milliseconds(1)
    /// The time for which descriptors that were left may have bytes that excuse an exchange whose time is over.
    package static let patience = Duration.seconds(1)

    /// The descriptor that was handled last.
    private var last: Int32 = -1
    /// The time since when each turn has left some.
    private var behindSince: MonotonicInstant?

    /// Creates a share of which nothing was used.
    package init() {}

    /// Returns the descriptors of a turn in their order, which begins after the one that was handled last.
    package func ordered(_ ready: [ReadyDescriptor]) -> [ReadyDescriptor] {
        let sorted = ready.sorted { $0.number < $1.number }
        return sorted.filter { $0.number > last } + sorted.filter { $0.number <= last }
    }

    /// Notes that a descriptor was handled. Returns whether another one may be handled in a turn whose share began at
    /// `start`.
    package mutating func note(_ number: Int32, since start: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        last = number
        return start.duration(to: now) < Self.limit
    }

    /// Returns whether descriptors may have bytes that were not read, after a turn that has left some or none.
    package mutating func mayHideBytes(leavingSome: Bool, at now: MonotonicInstant) -> Bool {
        guard leavingSome else {
            behindSince = nil
            return false
        }
        let start = behindSince ?? now
        behindSince = start
        return start.duration(to: now) < Self.patience
    }
}
