// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking

extension URLCache {
    /// The response cache of the same capacities that managers use in place of this cache. It exists as long as this
    /// object, and so survives the sessions of a manager.
    var responseCache: ResponseCache {
        Self.responseCaches.withLock { caches in
            let key = ObjectIdentifier(self)
            caches = caches.filter { $0.value.original.value.object != nil }
            if let known = caches[key] { return known.cache }
            let made: ResponseCache =
                diskCapacity > 0
                ? .makeStandard(capacity: Int64(diskCapacity), memory: memoryCapacity) : .memory(memoryCapacity)
            caches[key] = (UncheckedSendable(Weak(object: self)), made)
            return made
        }
    }

    private static let responseCaches = Lock<
        [ObjectIdentifier: (original: UncheckedSendable<Weak<URLCache>>, cache: ResponseCache)]
    >([:])
}
