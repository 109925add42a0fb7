// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The pixels of an image in sRGB: red, green, blue and alpha, one byte each, row by row from the top left.
///
/// Alpha is not premultiplied. Of an animated image it is the first frame, of a document the first page.
public struct Bitmap: Hashable, Sendable {
    /// The size in pixels, after reduction and rotation; both sides are at least 1.
    public let size: PixelSize
    /// The pixels, 4 bytes each, without padding between rows.
    public let pixels: Data

    /// Creates a bitmap from pixels in sRGB.
    ///
    /// - Parameters:
    ///   - size: The size in pixels; both sides are at least 1.
    ///   - pixels: Red, green, blue and alpha, one byte each and alpha not premultiplied, row by row from the top left.
    /// - Returns: `nil` if the number of bytes is not 4 per pixel of the size.
    public init?(size: PixelSize, pixels: Data) {
        guard size.width > 0, size.height > 0, pixels.count == size.decodedBytes else { return nil }
        self.size = size
        self.pixels = pixels
    }
}
