// SPDX-License-Identifier: MIT

import AsyncNetworking

/// Returns parameters with a `Double` in place of each `CGFloat`, at most 512 levels deep.
///
/// On Apple platforms a `CGFloat` in an `Any` is bridged to `NSNumber`. Foundation on Linux does not bridge it, and
/// refuses it in JSON and in property lists.
func replacingCGFloats(in value: Any, depth: Int = 0) -> Any {
    if let number = value as? CGFloat { return Double(number) }
    guard depth < Parameters.maximumDepth else { return value }
    if let dictionary = value as? [AnyHashable: Any] {
        return dictionary.mapValues { replacingCGFloats(in: $0, depth: depth + 1) }
    }
    if let array = value as? [Any] { return array.map { replacingCGFloats(in: $0, depth: depth + 1) } }
    return value
}
