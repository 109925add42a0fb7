// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// A file format of images, recognized by the content of a file. The raw values are the names of the cases.
@nonexhaustive
public enum ImageFormat: String, Hashable, Sendable, CaseIterable {
    /// Portable Network Graphics (ISO/IEC 15948), also animated.
    case png
    /// JPEG (ISO/IEC 10918-1), baseline and progressive.
    case jpeg
    /// GIF (GIF87a and GIF89a), also animated.
    case gif
    /// WebP (RFC 9649): lossy, lossless and extended.
    case webp
    /// AVIF, also animated: AV1 images in the ISO base media file format (https://aomediacodec.github.io/av1-avif/). It
    /// is recognized by the brand `avif` or `avis`, the major one or a compatible one.
    case avif
    /// HEIF (ISO/IEC 23008-12), including HEIC, also sequences of images. It is recognized by the major brand of the
    /// file.
    case heif
    /// BMP: Windows bitmaps, also with the headers of OS/2.
    case bmp
    /// TIFF 6.0 in both byte orders, without BigTIFF.
    case tiff
    /// ICO: Windows icons, with one or more images; no cursors.
    case ico

    /// The media type of the format, such as `image/png`; `image/heif` for all files of ``heif``, including HEIC, and
    /// `image/vnd.microsoft.icon` for ``ico``.
    public var mediaType: String {
        switch self {
        case .ico: "image/vnd.microsoft.icon"
        case .png, .jpeg, .gif, .webp, .avif, .heif, .bmp, .tiff: "image/\(rawValue)"
        }
    }

    /// Recognizes the format of a file by its first bytes, regardless of its name and media type. The rest of the file
    /// may still be malformed.
    ///
    /// - Parameter data: The file, or at least its beginning: no more than 512 bytes are read. With fewer, an AVIF file
    ///   may be recognized as HEIF, if its first brand is one of HEIF.
    /// - Returns: `nil` if the file has none of these formats, or the data are too short to recognize it.
    public init?(_ data: Data) {
        let bytes = HeaderBytes(data)
        if let format = Self.signatures.first(where: { bytes.has($0.signature, at: 0) })?.format {
            self = format
        } else if bytes.has(Self.riff, at: 0), bytes.has(Array("WEBP".utf8), at: 8) {
            self = .webp
        } else if bytes.has(Array("BM".utf8), at: 0), bytes.isBitmap {
            self = .bmp
        } else if let format = bytes.mediaFileFormat {
            self = format
        } else {
            return nil
        }
    }

    private static let riff = Array("RIFF".utf8)
    private static let signatures: [(signature: [UInt8], format: ImageFormat)] = [
        ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], .png),
        ([0xFF, 0xD8, 0xFF], .jpeg),
        (Array("GIF87a".utf8), .gif),
        (Array("GIF89a".utf8), .gif),
        ([0x49, 0x49, 0x2A, 0x00], .tiff),
        ([0x4D, 0x4D, 0x00, 0x2A], .tiff),
        ([0x00, 0x00, 0x01, 0x00], .ico),
    ]
}

extension HeaderBytes {
    /// Whether the size of the second header is one of those of Windows and OS/2.
    fileprivate var isBitmap: Bool {
        guard let size = try? little32(at: 14) else { return false }
        return [12, 16, 40, 52, 56, 64, 108, 124].contains(size)
    }

    /// The format that the brands of an ISO base media file declare (ISO/IEC 14496-12 §4.3).
    fileprivate var mediaFileFormat: ImageFormat? {
        guard has(Array("ftyp".utf8), at: 4), let size = try? big32(at: 0), let major = try? text(at: 8) else {
            return nil
        }
        // The compatible brands follow the minor version.
        let compatible = stride(from: 16, to: min(size, 512) - 3, by: 4).compactMap { try? text(at: $0) }
        let brands = [major] + compatible
        if brands.contains(where: { $0 == "avif" || $0 == "avis" }) { return .avif }
        let known: Set = ["heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "msf1"]
        return known.contains(major) ? .heif : nil
    }
}
