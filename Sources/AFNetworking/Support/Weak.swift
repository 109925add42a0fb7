// SPDX-License-Identifier: MIT

/// A weak reference, which a lock can protect.
struct Weak<Object: AnyObject> {
    private(set) weak var object: Object?
}

extension Weak: Sendable where Object: Sendable {}
