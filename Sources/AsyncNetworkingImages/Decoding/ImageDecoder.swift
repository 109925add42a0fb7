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
