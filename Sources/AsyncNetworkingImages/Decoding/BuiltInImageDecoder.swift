// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The decoder of the library, available as `.builtIn`: libvips, if the package trait `ImageDecoding` is enabled.
///
/// It decodes PNG, JPEG, GIF, WebP, TIFF, and AVIF and HEIF if libvips has libheif, to sRGB with 8 bits per channel; it
/// decodes neither BMP nor ICO. Of several frames or pages it decodes the first, of an AVIF or HEIF file the primary
/// image. Colours are converted from an embedded ICC profile. An image is reduced to
/// ``ImageDecodingOptions/maximumSize`` while it is loaded, so that a thumbnail of a large JPEG takes a fraction of the
/// time and memory. Truncation and damage that libvips notices are errors. Calls on several threads run concurrently.
/// See https://www.libvips.org/API/current/.
///
/// Without the trait, which is off by default, it throws ``ImageError/decoderUnavailable``.
public struct BuiltInImageDecoder: ImageDecoder {
    /// Creates the decoder, which has no state: all instances are equivalent.
    public init() {}

    /// Decodes a file in the calling thread, which it blocks, with the help of libvips' own threads.
    ///
    /// - Parameters:
    ///   - data: The file.
    ///   - header: The header of the file, as read from it by ``ImageHeader/init(_:)``. Only its format is used: the
    ///     size that libvips finds is checked against the limits.
    ///   - options: The size, the orientation and the limits of the result.
    /// - Throws: ``ImageError/decoderUnavailable`` without the trait; ``ImageError/decoding(reason:)`` if the file is
    ///   damaged or libvips cannot read its format; ``ImageError/tooManyPixels(_:limit:)`` or
    ///   ``ImageError/tooManyBytes(_:limit:)`` if the image exceeds the limits.
    public func decode(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap {
        #if ImageDecoding
            try VipsLibrary.decode(data, header, options)
        #else
            throw ImageError.decoderUnavailable
        #endif
    }
}
