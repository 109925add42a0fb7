// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The decoder of the library, available as `.builtIn`: libvips, if the package trait `ImageDecoding` is enabled.
///
/// It decodes PNG, JPEG, GIF, WebP, TIFF, and AVIF and HEIF if libvips has libheif, to sRGB with 8 bits per channel.
/// An image is reduced to ``ImageDecodingOptions/maximumSize`` while it is loaded, so that a thumbnail of a large JPEG
/// takes a fraction of the time and memory. Truncated and damaged files are errors. Images are decoded concurrently.
///
/// Without the trait, which is off by default, it throws ``ImageError/decoderUnavailable``.
public struct BuiltInImageDecoder: ImageDecoder {
    /// Creates the decoder.
    public init() {}

    /// Decodes a file.
    ///
    /// - Throws: ``ImageError``: ``ImageError/decoderUnavailable`` without the trait, ``ImageError/decoding(reason:)`` if
    ///   the file is damaged or libvips cannot read its format, and the errors of the limits.
    public func decode(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap {
        #if ImageDecoding
            try VipsLibrary.decode(data, header, options)
        #else
            throw ImageError.decoderUnavailable
        #endif
    }
}
