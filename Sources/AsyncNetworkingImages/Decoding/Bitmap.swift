// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The pixels of an image in sRGB: red, green, blue and alpha, one byte each, row by row from the top left.
///
/// A bitmap is the result of an ``ImageDecoder``, found in ``ImageContent/bitmap`` or returned by
/// ``ImageContent/decoded(by:options:)``. Alpha is not premultiplied, and 255 for an image without transparency.
public struct Bitmap: Hashable, Sendable {
    /// The size in pixels, after any reduction and rotation by the decoder; both sides are at least 1.
    public let size: PixelSize
    /// The pixels in sRGB, row by row from the top left and without padding: 4 bytes each, red, green, blue and alpha,
    /// which is not premultiplied.
    public let pixels: Data

    /// Creates a bitmap from pixels in sRGB.
    ///
    /// - Parameters:
    ///   - size: The size in pixels.
    ///   - pixels: Red, green, blue and alpha, one byte each and alpha not premultiplied, row by row from the top left.
    /// - Returns: `nil` if a side is below 1, or `pixels` does not have exactly 4 bytes for each pixel of the size.
    public init?(size: PixelSize, pixels: Data) {
        guard size.width > 0, size.height > 0, pixels.count == size.decodedBytes else { return nil }
        self.size = size
        self.pixels = pixels
    }
}
