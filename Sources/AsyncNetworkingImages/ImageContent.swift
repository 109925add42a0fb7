// SPDX-License-Identifier: MIT

import AsyncNetworking
public import FoundationEssentials

/// A received image: its file, its format and size, and its pixels if it was decoded.
///
/// It is the result of an ``ImageDownloader`` and of an ``ImageResponseSerializer``, or made of a file by
/// ``init(_:scale:limits:)``.
public struct ImageContent: Hashable, Sendable {
    /// The file as received, after the decompression of a content coding and otherwise unchanged.
    public let data: Data
    /// The format and the stored size in pixels, read from the file.
    public let header: ImageHeader
    /// The number of pixels per point, such as 2 for `@2x` images; 1 by default, and always positive. It is not read
    /// from the file or its name.
    public let scale: Double
    /// The pixels; `nil` if the image was not decoded when it was received. ``decoded(by:options:)`` decodes it later.
    public let bitmap: Bitmap?

    /// Creates the content from a file after reading its header, without decoding: ``bitmap`` is `nil`.
    ///
    /// - Parameters:
    ///   - data: The file.
    ///   - scale: The number of pixels per point; 1 by default, and a value that is not positive counts as 1.
    ///   - limits: The limits, of which both apply to the stored size, at 4 bytes per pixel; 128 Mi pixels and 512 MiB
    ///     by default.
    /// - Throws: ``ImageError/unknownFormat``, ``ImageError/truncated(_:)`` or ``ImageError/malformed(_:)`` if the
    ///   header cannot be read; ``ImageError/tooManyPixels(_:limit:)`` or ``ImageError/tooManyBytes(_:limit:)`` if the
    ///   image exceeds the limits.
    public init(_ data: Data, scale: Double = 1, limits: ImageLimits = ImageLimits()) throws(ImageError) {
        let header = try ImageHeader(data)
        try limits.check(header.size)
        self.init(data, header, scale: scale, bitmap: nil)
    }

    init(_ data: Data, _ header: ImageHeader, scale: Double, bitmap: Bitmap?) {
        self.data = data
        self.header = header
        self.scale = scale > 0 ? scale : 1
        self.bitmap = bitmap
    }

    /// The size in points: the size of ``bitmap`` divided by ``scale``. For an image that was not decoded, it is based
    /// on the stored size in ``header``, to which no rotation is applied.
    public var pointSize: (width: Double, height: Double) {
        let size = bitmap?.size ?? header.size
        return (Double(size.width) / scale, Double(size.height) / scale)
    }

    /// The memory that the image occupies in bytes: the sizes of its file and, if ``bitmap`` is not `nil`, of its
    /// pixels. It is the cost of the image in an ``AutoPurgingImageCache``.
    public var memoryCost: Int { data.count + (bitmap?.pixels.count ?? 0) }

    /// Returns the pixels, which are decoded off the caller's actor unless ``bitmap`` has them. They are not stored:
    /// each call decodes the file again.
    ///
    /// In a task that prefers an executor, the decoder runs on that: with `SessionManager.eventLoopExecutor`, all
    /// transfers of the session wait for it.
    ///
    /// - Parameters:
    ///   - decoder: The decoder; libvips by default, which requires the package trait `ImageDecoding`.
    ///   - options: The size, the orientation and the limits of the bitmap; by default the image keeps its size, its
    ///     EXIF orientation is applied, and it has at most 128 Mi pixels and 512 MiB. They are not applied to an
    ///     existing ``bitmap``.
    /// - Throws: ``ImageError/decoderUnavailable`` for the default decoder without the trait;
    ///   ``ImageError/decoding(reason:)`` if the file is damaged or libvips cannot read its format;
    ///   ``ImageError/tooManyPixels(_:limit:)`` or ``ImageError/tooManyBytes(_:limit:)`` if the image exceeds the
    ///   limits of the options; `CancellationError` if the calling task is cancelled before decoding begins, which is
    ///   not interrupted later; the errors of another decoder.
    @concurrent public func decoded(
        by decoder: some ImageDecoder = BuiltInImageDecoder(), options: ImageDecodingOptions = ImageDecodingOptions()
    ) async throws -> Bitmap {
        if let bitmap { return bitmap }
        try Task.checkCancellation()
        return try decoder.decodeChecked(data, header, options)
    }
}

extension ImageContent {
    /// Returns the image with its pixels, decoded in the calling thread; `nil` if there is no decoder, or it fails.
    package func inflated() -> ImageContent? {
        let bitmap = try? BuiltInImageDecoder().decodeChecked(data, header, ImageDecodingOptions())
        return bitmap.map { ImageContent(data, header, scale: scale, bitmap: $0) }
    }
}

extension ImageContent: CustomStringConvertible {
    /// The format and the size as text, such as `png, 640 × 480`.
    public var description: String { "\(header.format), \(header.size)" }
}

// ImageError
// ├── unknownFormat       the data are no image of a known format
// ├── truncated           the data end before the size of the image
// ├── malformed           the size is missing or zero
// ├── tooManyPixels       the image exceeds the limits
// ├── tooManyBytes        the decoded image exceeds the limits
// ├── decoderUnavailable  this build of the library has no decoder
// └── decoding            the decoder failed

/// The reason why data are not accepted as an image, or cannot be decoded.
///
/// Sessions, downloaders and ``ImageContent`` throw it unchanged, not in a `SessionError`.
@nonexhaustive
public enum ImageError: Error, Hashable, Sendable {
    /// The format is not one of ``ImageFormat``, or the data are too short to recognize it.
    case unknownFormat
    /// The data of this format end before the size of the image.
    case truncated(ImageFormat)
    /// The header in this format has no size or an invalid one, such as a width of 0.
    case malformed(ImageFormat)
    /// The image with this stored size has more pixels than `limit`, the value of ``ImageLimits/pixels``.
    case tooManyPixels(PixelSize, limit: Int)
    /// The decoded image with this size in pixels, after a reduction, has more bytes than `limit`, the value of
    /// ``ImageLimits/decodedBytes``.
    case tooManyBytes(PixelSize, limit: Int)
    /// The library was built without the package trait `ImageDecoding`, which is off by default, and the program
    /// specified no ``ImageDecoder`` of its own.
    case decoderUnavailable
    /// The decoder failed for this reason, a message of libvips or of another decoder, for example because the data are
    /// damaged or the decoder does not support the format. If libvips fails for several images at the same time, the
    /// message may be that of another one.
    case decoding(reason: String)
}

extension ImageError: CustomStringConvertible, LocalizedError {
    /// The ``description``, which Foundation returns as `localizedDescription`.
    public var errorDescription: String? { description }

    /// A sentence that says what happened and, for the limits and a missing decoder, which setting to change.
    public var description: String {
        switch self {
        case .unknownFormat: "The data are not an image of a known format."
        case .truncated(let format): "The \(format) image ends before its size."
        case .malformed(let format): "The header of the \(format) image has no valid size."
        case .tooManyPixels(let size, let limit):
            "The image has \(size) pixels, more than the limit of \(limit); see ImageLimits.pixels."
        case .tooManyBytes(let size, let limit):
            "The image has \(size) pixels, for which decoding takes more than the limit of \(limit) bytes; see "
                + "ImageLimits.decodedBytes."
        case .decoderUnavailable:
            "There is no image decoder: enable the package trait ImageDecoding, or specify a decoder."
        case .decoding(let reason): "The image cannot be decoded: \(reason.printable)"
        }
    }
}
