// SPDX-License-Identifier: MIT

/// A width and a height in pixels.
public struct PixelSize: Hashable, Sendable, CustomStringConvertible {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int

    /// Creates a size from a width and a height, which are not checked and may be zero or negative.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The number of pixels, the product of both sides; `Int.max` if it is larger than that.
    public var pixels: Int {
        let (product, overflows) = width.multipliedReportingOverflow(by: height)
        return overflows ? .max : product
    }

    /// The size of the decoded image in bytes, 4 per pixel; `Int.max` if it is larger than that.
    public var decodedBytes: Int {
        let (product, overflows) = pixels.multipliedReportingOverflow(by: 4)
        return overflows ? .max : product
    }

    /// The size as text, such as `640 × 480`.
    public var description: String { "\(width) × \(height)" }
}
