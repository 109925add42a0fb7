// SPDX-License-Identifier: MIT

package import ANHTTP
import HTTPTypes

extension ResponseHead {
    /// Returns the wait that the server asks for in `Retry-After` (RFC 9110 §10.2.3), or `nil` if the field is missing
    /// or malformed.
    ///
    /// A date is compared with the response's `Date`, that is, with the server's own clock; without `Date`, with `now`.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    package func retryAfter(now: Int64) -> Duration? {
        guard let value = headers.first(.retryAfter), !value.isEmpty else { return nil }
        let parts = value.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) {
            let whole = Duration.seconds(Int64(parts[0]) ?? Int64.max)
            // Some servers send a fraction of a second, which is read to the millisecond.
            guard parts.count == 2, let fraction = Int64((parts[1] + "00").prefix(3)) else { return whole }
            return whole + .milliseconds(fraction)
        }
        guard let date = HTTPDate(value, now: now) else { return nil }
        let current = headers.first(.date).flatMap { HTTPDate($0, now: now) }?.seconds ?? now
        return .seconds(max(0, date.seconds - current))
    }
}
