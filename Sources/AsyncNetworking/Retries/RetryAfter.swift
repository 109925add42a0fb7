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
        if value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return .seconds(Int64(value) ?? Int64.max)
        }
        guard let date = HTTPDate(value, now: now) else { return nil }
        let current = headers.first(.date).flatMap { HTTPDate($0, now: now) }?.seconds ?? now
        return .seconds(max(0, date.seconds - current))
    }
}
