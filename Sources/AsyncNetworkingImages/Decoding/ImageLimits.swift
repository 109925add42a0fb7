// SPDX-License-Identifier: MIT

/// The limits on the size of images, which are checked before an image is decoded.
///
/// They are set by ``ImageDecodingOptions/limits``, or passed to ``ImageContent/init(_:scale:limits:)``.
///
/// A file of a few kilobytes can claim billions of pixels. The limits apply to what the header claims, even if the
/// image is not decoded, and in ``BuiltInImageDecoder`` to the size that it finds.
public struct ImageLimits: Hashable, Sendable {
    /// The maximum number of pixels of the stored image, before it is reduced; 128 Mi (134,217,728) by default. An
    /// image above it fails with ``ImageError/tooManyPixels(_:limit:)``. With 0 or a negative value, every image is
    /// refused.
    public var pixels: Int
    /// The maximum size of the decoded image in bytes, at 4 bytes per pixel, after it is reduced to
    /// ``ImageDecodingOptions/maximumSize``; 512 MiB by default. An image above it fails with
    /// ``ImageError/tooManyBytes(_:limit:)``. With a value below 4, every image is refused.
    ///
    /// The reduced size is calculated from the header for both orientations, and the larger one counts, even if the
    /// image is then decoded in the other.
    public var decodedBytes: Int

    /// Creates limits from two values, which are not checked.
    ///
    /// Every image is refused if `pixels` is below 1 or `decodedBytes` is below 4, the size of one pixel.
    ///
    /// - Parameters:
    ///   - pixels: The maximum number of pixels, before a reduction; 128 Mi by default.
    ///   - decodedBytes: The maximum size of the decoded image in bytes, after a reduction; 512 MiB by default.
    public init(pixels: Int = 128 << 20, decodedBytes: Int = 512 << 20) {
        self.pixels = pixels
        self.decodedBytes = decodedBytes
    }

    /// Throws ``ImageError`` if an image of this size exceeds the limits.
    ///
    /// - Parameters:
    ///   - size: The size of the image.
    ///   - decoded: The size to which it is reduced while it is decoded; `nil`, the default, for none.
    func check(_ size: PixelSize, decoded: PixelSize? = nil) throws(ImageError) {
        guard size.pixels <= pixels else { throw .tooManyPixels(size, limit: pixels) }
        let decoded = decoded ?? size
        guard decoded.decodedBytes <= decodedBytes else { throw .tooManyBytes(decoded, limit: decodedBytes) }
    }
}
