// SPDX-License-Identifier: MIT

import CLinux

/// Unpredictable masking keys for frames (RFC 6455 §5.3), of which the system provides many at once.
struct MaskingKeys: Sendable {
    private var keys: [UInt32] = []

    /// Returns a key that is used once.
    mutating func next() -> UInt32 {
        if keys.isEmpty { keys = Self.random() }
        return keys.popLast() ?? .random(in: .min ... .max)
    }

    /// Returns up to 64 random numbers, which getrandom(2) provides without interruption.
    private static func random() -> [UInt32] {
        unsafe [UInt32](unsafeUninitializedCapacity: 64) { keys, count in
            let bytes = unsafe getrandom(keys.baseAddress, 64 * MemoryLayout<UInt32>.size, 0)
            count = max(0, bytes) / MemoryLayout<UInt32>.size
        }
    }
}
