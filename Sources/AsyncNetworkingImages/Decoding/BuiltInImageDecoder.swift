// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The decoder of the library, available as `.builtIn`.
///
/// Without the package trait `ImageDecoding`, which is off by default, it throws ``ImageError/decoderUnavailable``.
public struct BuiltInImageDecoder: ImageDecoder {
    /// Creates the decoder.
    public init() {}

    /// Decodes a file.
    ///
    /// - Throws: ``ImageError``: ``ImageError/decoderUnavailable`` without the trait, ``ImageError/decoding(reason:)`` if
    ///   the file is damaged, and the errors of the limits.
    public func decode(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap {
        throw ImageError.decoderUnavailable
    }
}
