// SPDX-License-Identifier: MIT

package import ANHTTP
import HTTPTypes

extension ResponseHead {
    /// How long the server asks to wait with the next request, RFC 9110 §10.2.3; nil where it does not say, or says
    /// nonsense.
    ///
    /// A date is taken relative to the server's own clock, where `Date` tells it.
    ///
    /// - Parameter now: Seconds since 1970.
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
