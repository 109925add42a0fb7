// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A decoder of images.
///
/// The library has one, ``BuiltInImageDecoder``, if the package trait `ImageDecoding` is enabled. A program can use
/// another library:
///
/// ```swift
/// struct MyDecoder: ImageDecoder {
///     func decode(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap { … }
/// }
/// ```
public protocol ImageDecoder: Sendable {
    /// Decodes a file.
    ///
    /// It is called concurrently for several images, and only for images whose header is within the limits of
    /// `options`. The data are not trusted: the file may be truncated, or contradict its header.
    ///
    /// | caller | where |
    /// |---|---|
    /// | ``ImageDownloader`` | on a thread of the concurrency pool |
    /// | ``ImageContent/decoded(by:options:)`` | on such a thread, or on the executor that the calling task prefers |
    /// | ``ImageResponseSerializer`` | in the task that called the session, possibly on the main actor |
    /// | ``ImageResponseSerializer`` of a data or upload task | in the task that performs the request |
    ///
    /// - Parameters:
    ///   - data: The file.
    ///   - header: The format and the size that the file claims.
    ///   - options: The size, the orientation and the limits of the result.
    /// - Returns: The pixels. Their size is checked against neither the options nor the header.
    /// - Throws: Any error, such as ``ImageError/decoding(reason:)``; it is thrown to the code that requested the
    ///   image, unchanged unless it is a `TransportError` or `SerializationError`, which a session wraps in a
    ///   `SessionError`.
    func decode(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap
}

extension ImageDecoder where Self == BuiltInImageDecoder {
    /// The decoder of the library, ``BuiltInImageDecoder``, which uses libvips. It requires the package trait
    /// `ImageDecoding`, which is off by default, and otherwise throws ``ImageError/decoderUnavailable`` for each image.
    public static var builtIn: BuiltInImageDecoder { BuiltInImageDecoder() }
}

extension ImageDecoder {
    /// Decodes a file after checking its header against the limits.
    func decodeChecked(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap {
        try options.limits.check(header.size, decoded: options.decodedSize(of: header.size))
        return try decode(data, header, options)
    }
}

/// The options with which an image is decoded: its size, its orientation and its limits.
///
/// They are the ``ImageResponseSerializer/options`` of a serializer, also that of an ``ImageDownloader``, or passed to
/// ``ImageContent/decoded(by:options:)``. A decoder of the program's own applies the size and the orientation itself.
public struct ImageDecodingOptions: Hashable, Sendable {
    /// The size in pixels within which the result must fit; `nil`, the default, keeps the size of the image.
    ///
    /// Larger images are reduced while they are decoded, keeping their proportions; smaller ones are not enlarged. The
    /// image fits after its orientation was applied. A width or height below 1 counts as 1.
    public var maximumSize: PixelSize?
    /// Whether the orientation that EXIF specifies is applied; `true` by default.
    ///
    /// Otherwise the pixels keep their stored orientation. The property has no effect on AVIF and HEIF:
    /// ``BuiltInImageDecoder`` always applies the rotation that their box `irot` specifies, and ignores EXIF there.
    public var appliesOrientation: Bool
    /// The limits on the size of the image, checked against its header before decoding, and by ``BuiltInImageDecoder``
    /// against the real size; 128 Mi pixels and 512 MiB by default. An image that exceeds them fails with
    /// ``ImageError/tooManyPixels(_:limit:)`` or ``ImageError/tooManyBytes(_:limit:)``.
    public var limits: ImageLimits

    /// Creates options; by default the image keeps its size, its orientation is applied, and it has at most 128 Mi
    /// pixels and 512 MiB.
    ///
    /// - Parameters:
    ///   - maximumSize: The size in pixels within which the result must fit; `nil`, the default, keeps the size of the
    ///     image. A width or height below 1 counts as 1.
    ///   - appliesOrientation: Whether the orientation that EXIF specifies is applied, except to AVIF and HEIF; `true`
    ///     by default.
    ///   - limits: The limits on the size of the image, before and after a reduction; 128 Mi pixels and 512 MiB by
    ///     default.
    public init(
        maximumSize: PixelSize? = nil, appliesOrientation: Bool = true, limits: ImageLimits = ImageLimits()
    ) {
        self.maximumSize = maximumSize
        self.appliesOrientation = appliesOrientation
        self.limits = limits
    }

    /// Returns a bound on the size to which an image of a size is decoded, in either orientation.
    func decodedSize(of size: PixelSize) -> PixelSize {
        guard let maximumSize else { return size }
        let (width, height) = (max(maximumSize.width, 1), max(maximumSize.height, 1))
        let scale = max(
            min(Double(width) / Double(size.width), Double(height) / Double(size.height)),
            min(Double(width) / Double(size.height), Double(height) / Double(size.width)))
        guard scale < 1 else { return size }
        return PixelSize(
            width: max(1, Int((Double(size.width) * scale).rounded(.up))),
            height: max(1, Int((Double(size.height) * scale).rounded(.up))))
    }
}

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
    /// image is then decoded in the other. For ``BuiltInImageDecoder``, pixels of more than 4 bytes, such as those with 16
    /// bits per channel, count with their own size, rounded up to a multiple of 4.
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
    ///   - bytesPerPixel: The size of its pixels before they are converted, if that is more than four bytes.
    func check(_ size: PixelSize, decoded: PixelSize? = nil, bytesPerPixel: Int = 4) throws(ImageError) {
        guard size.pixels <= pixels else { throw .tooManyPixels(size, limit: pixels) }
        let decoded = decoded ?? size
        guard decoded.decodedBytes <= decodedBytes / max(1, (bytesPerPixel + 3) / 4) else {
            throw .tooManyBytes(decoded, limit: decodedBytes)
        }
    }
}
