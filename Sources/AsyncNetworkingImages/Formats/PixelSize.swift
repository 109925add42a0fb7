// SPDX-License-Identifier: MIT

/// A width and a height in pixels, as of an image or of a limit.
public struct PixelSize: Hashable, Sendable, CustomStringConvertible {
    /// The number of pixels in a row; not checked, it may be zero or negative.
    public var width: Int
    /// The number of rows of pixels; not checked, it may be zero or negative.
    public var height: Int

    /// Creates a size from a width and a height, which are not checked and may be zero or negative.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The number of pixels, the product of ``width`` and ``height``; negative if one of them is negative and the other
    /// positive, and `Int.max` if the product overflows in either direction.
    public var pixels: Int {
        let (product, overflows) = width.multipliedReportingOverflow(by: height)
        return overflows ? .max : product
    }

    /// The size of the decoded image in bytes, 4 for each of ``pixels``; negative if their number is, and `Int.max` if
    /// the product overflows in either direction.
    public var decodedBytes: Int {
        let (product, overflows) = pixels.multipliedReportingOverflow(by: 4)
        return overflows ? .max : product
    }

    /// The size as text, such as `640 × 480`.
    public var description: String { "\(width) × \(height)" }
}
