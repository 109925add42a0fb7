// SPDX-License-Identifier: MIT

import AsyncNetworking
public import FoundationEssentials

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
    /// The decoded image with this size in pixels, after a reduction and at 4 bytes per pixel, has more bytes than
    /// `limit`, the value of ``ImageLimits/decodedBytes``.
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
            "The image has \(size) pixels, whose \(size.decodedBytes) bytes exceed the limit of \(limit); see "
                + "ImageLimits.decodedBytes."
        case .decoderUnavailable:
            "There is no image decoder: enable the package trait ImageDecoding, or specify a decoder."
        case .decoding(let reason): "The image cannot be decoded: \(reason.printable)"
        }
    }
}
