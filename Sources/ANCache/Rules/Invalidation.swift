// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials
import HTTPTypes

/// The stored responses that a response to an unsafe request makes obsolete (RFC 9111 §4.4).
package enum Invalidation {
    /// Returns the targets whose stored responses are removed: the request's own, and those of `Location` and
    /// `Content-Location` in the same origin. Empty unless the method is unsafe and the status is 2xx or 3xx.
    package static func targets(of head: ResponseHead, to request: CacheRequest, at url: URL) -> Set<String> {
        guard !request.isSafe, (200..<400).contains(head.status.code) else { return [] }
        let own = CacheKey.origin(of: request.target)
        var targets: Set = [request.target]
        for name in [HTTPField.Name.location, .contentLocation] {
            for value in head.headers[values: name] {
                guard let other = URL(reference: value, relativeTo: url) else { continue }
                let target = CacheKey.target(other)
                if CacheKey.origin(of: target) == own { targets.insert(target) }
            }
        }
        return targets
    }
}
