// SPDX-License-Identifier: MIT

import Synchronization

/// Whether an engine may hold cookies: a server or the program has set one at some time. Readable from any thread.
package final class CookieFlag: Sendable {
    private let flag = Atomic(false)

    /// Creates a flag for an engine without cookies.
    package init() {}

    /// Whether a cookie was set.
    package var isSet: Bool { flag.load(ordering: .acquiring) }

    /// Notes that a cookie is set.
    func set() { flag.store(true, ordering: .releasing) }
}
