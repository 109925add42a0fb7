// SPDX-License-Identifier: MIT

import Foundation

extension NSCopying {
    /// Returns a copy of the object, or the object itself if the copy would lack the overrides of its class.
    func copyOfSameClass(_ zone: NSZone?) -> Self {
        let copy = self.copy(with: zone)
        return type(of: copy) == type(of: self as Any) ? copy as? Self ?? self : self
    }
}
