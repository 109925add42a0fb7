// SPDX-License-Identifier: MIT

import ANHTTP
import ANSystem

/// The request with which a download goes on after one of its responses, so that all requests of a download are one
/// call: with one retry limit, deadline and time limit.
///
/// The reader of the response sets it, and then throws the failure of the response, or returns if nothing failed. The
/// step that retries takes it. Interceptors see only what the reader throws.
final class Continuation: Sendable {
    private let next = Lock<Next?>(nil)

    /// The next request.
    struct Next: Sendable {
        /// Whether more bytes are there than ever before in this download.
        var hasProgress: Bool
        /// Changes a request to ask for the bytes that are missing.
        var prepare: @Sendable (inout Request) -> Void
    }

    /// Whether the step that retries will pass on another response.
    var isPending: Bool { next.withLock { $0 != nil } }

    func set(_ next: Next) { self.next.withLock { $0 = next } }

    func take() -> Next? {
        next.withLock { next in
            defer { next = nil }
            return next
        }
    }
}

/// The limit on the requests of a download besides those of the retry policy: to start over, and for the rest after a
/// response with a part of the requested range.
///
/// 20 are permitted, as for redirects, and one more for each 64 KiB received: a server may send a large file in parts of
/// a megabyte, but not in parts of a byte.
package struct FollowUpLimit: Sendable {
    private var count: Int64 = 0

    package init() {}

    /// Counts a request, and returns whether it is permitted after a number of received bytes.
    package mutating func permitsNext(after received: Int64) -> Bool {
        count += 1
        return count <= 20 + max(0, received) / (64 << 10)
    }
}
