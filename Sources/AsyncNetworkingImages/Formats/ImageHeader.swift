// SPDX-License-Identifier: MIT

public import FoundationEssentials

/// The format and the size of an image, read from the beginning of its file without decoding.
///
/// | format | where the size is |
/// |---|---|
/// | PNG | in the first 24 bytes |
/// | JPEG | in the frame header, after the metadata, which can be large |
/// | GIF | in the first 10 bytes: the size of the canvas |
/// | WebP | in the first 30 bytes |
/// | AVIF, HEIF | in the box `meta`, usually in the first kilobytes: the size of the primary item |
/// | BMP | in the first 26 bytes |
/// | TIFF | in the first directory, often at the end of the file: the size of the first page |
/// | ICO | in the directory: the size of the largest icon |
///
/// The size of an icon in PNG is that of its own header, if that has arrived. The size is the stored one: a rotation
/// that EXIF or the box `irot` specifies is not applied. The decoded size may differ from what a header claims;
/// ``BuiltInImageDecoder`` therefore checks ``ImageLimits`` again.
public struct ImageHeader: Hashable, Sendable {
    /// The format, as recognized by the first bytes of the file, regardless of its media type.
    public let format: ImageFormat
    /// The stored size in pixels, without a rotation; both sides are at least 1.
    public let size: PixelSize

    /// Reads the header of a file, or of its beginning.
    ///
    /// The time is at most proportional to the length of the metadata; the memory is constant.
    ///
    /// - Parameter data: The file, or as much of it as has arrived.
    /// - Throws: ``ImageError/truncated(_:)`` if the data end before the size; ``ImageError/unknownFormat`` if the
    ///   format is not one of ``ImageFormat``, or the data are too short to recognize it; ``ImageError/malformed(_:)``
    ///   if the size is missing or invalid, such as a width of 0.
    public init(_ data: Data) throws(ImageError) {
        guard let format = ImageFormat(data) else { throw .unknownFormat }
        let bytes = HeaderBytes(data)
        let size: PixelSize?
        do throws(HeaderBytes.Truncation) {
            size =
                switch format {
                case .png: try bytes.sizeOfPNG()
                case .jpeg: try bytes.sizeOfJPEG()
                case .gif: PixelSize(width: try bytes.little16(at: 6), height: try bytes.little16(at: 8))
                case .webp: try bytes.sizeOfWebP()
                case .avif, .heif: try bytes.sizeOfPrimaryItem()
                case .bmp: try bytes.sizeOfBMP()
                case .tiff: try bytes.sizeOfTIFF()
                case .ico: try bytes.sizeOfICO()
                }
        } catch {
            throw .truncated(format)
        }
        guard let size, size.width > 0, size.height > 0 else { throw .malformed(format) }
        self.format = format
        self.size = size
    }

    init(format: ImageFormat, size: PixelSize) {
        self.format = format
        self.size = size
    }
}

extension HeaderBytes {
    /// Returns the size in `IHDR`, which must be the first chunk (PNG §11.2.1).
    fileprivate func sizeOfPNG(at start: Int = 0) throws(Truncation) -> PixelSize? {
        guard try text(at: start + 12) == "IHDR" else { return nil }
        let size = PixelSize(width: try big32(at: start + 16), height: try big32(at: start + 20))
        return max(size.width, size.height) <= Int32.max ? size : nil
    }

    /// Returns the size in the first frame header (JPEG §B.2.2).
    fileprivate func sizeOfJPEG() throws(Truncation) -> PixelSize? {
        var offset = 2
        while true {
            guard try byte(at: offset) == 0xFF else { return nil }
            let marker = try byte(at: offset + 1)
            switch marker {
            case 0xFF:
                // A fill byte.
                offset += 1
            case 0x01, 0xD0...0xD7:
                // Markers without parameters.
                offset += 2
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                return PixelSize(width: try big16(at: offset + 7), height: try big16(at: offset + 5))
            case 0x00, 0xD8...0xDA:
                // The scan or the end of the image, without a frame.
                return nil
            default:
                let length = try big16(at: offset + 2)
                guard length >= 2 else { return nil }
                offset += 2 + length
            }
        }
    }

    /// Returns the size in the first chunk (RFC 9649 §2.5–2.7).
    fileprivate func sizeOfWebP() throws(Truncation) -> PixelSize? {
        switch try text(at: 12) {
        case "VP8 ":
            guard try little24(at: 23) == 0x2A019D else { return nil }
            return PixelSize(width: try little16(at: 26) & 0x3FFF, height: try little16(at: 28) & 0x3FFF)
        case "VP8L":
            guard try byte(at: 20) == 0x2F else { return nil }
            let bits = try little32(at: 21)
            return PixelSize(width: bits & 0x3FFF + 1, height: bits >> 14 & 0x3FFF + 1)
        case "VP8X":
            return PixelSize(width: try little24(at: 24) + 1, height: try little24(at: 27) + 1)
        default:
            return nil
        }
    }

    /// Returns the size in the second header. A negative height means that rows are stored from top to bottom.
    fileprivate func sizeOfBMP() throws(Truncation) -> PixelSize? {
        guard try little32(at: 14) != 12 else {
            return PixelSize(width: try little16(at: 18), height: try little16(at: 20))
        }
        let width = Int(Int32(truncatingIfNeeded: try little32(at: 18)))
        let height = Int(Int32(truncatingIfNeeded: try little32(at: 22)))
        return PixelSize(width: width, height: abs(height))
    }

    /// Returns the size in the first directory: the tags 256 and 257, of type SHORT or LONG (TIFF 6.0 §2).
    fileprivate func sizeOfTIFF() throws(Truncation) -> PixelSize? {
        let isBig = try byte(at: 0) == 0x4D
        func short(_ offset: Int) throws(Truncation) -> Int {
            try isBig ? big16(at: offset) : little16(at: offset)
        }
        func long(_ offset: Int) throws(Truncation) -> Int {
            try isBig ? big32(at: offset) : little32(at: offset)
        }
        let directory = try long(4)
        var size = PixelSize(width: 0, height: 0)
        for index in 0..<(try short(directory)) {
            let entry = directory + 2 + 12 * index
            let tag = try short(entry)
            guard tag == 256 || tag == 257 else { continue }
            let type = try short(entry + 2)
            guard type == 3 || type == 4 else { return nil }
            let value = try type == 3 ? short(entry + 8) : long(entry + 8)
            if tag == 256 { size.width = value } else { size.height = value }
            if size.width > 0, size.height > 0 { return size }
        }
        return nil
    }

    /// Returns the size of the largest icon. That of an icon in PNG is in its own header, if that is available.
    fileprivate func sizeOfICO() throws(Truncation) -> PixelSize? {
        var largest: PixelSize?
        for index in 0..<(try little16(at: 4)) {
            let entry = 6 + 16 * index
            let (width, height) = (try byte(at: entry), try byte(at: entry + 1))
            let offset = try little32(at: entry + 12)
            var size = PixelSize(width: width == 0 ? 256 : width, height: height == 0 ? 256 : height)
            if has([0x89, 0x50, 0x4E, 0x47], at: offset), let real = try? sizeOfPNG(at: offset) { size = real }
            if size.pixels > largest?.pixels ?? 0 { largest = size }
        }
        return largest
    }
}

/// A width and a height in pixels, as of an image or of a limit.
public struct PixelSize: Hashable, Sendable, CustomStringConvertible {
    /// The number of pixels in a row; not checked, it may be zero or negative.
    public var width: Int
    /// The number of rows of pixels; not checked, it may be zero or negative.
    public var height: Int

    /// Creates a size from a width and a height, which are not checked and may be zero or negative.
    public init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// The number of pixels, the product of ``width`` and ``height``; negative if one of them is negative and the other
    /// positive, and `Int.max` if the product overflows in either direction.
    public var pixels: Int {
        let (product, overflows) = width.multipliedReportingOverflow(by: height)
        return overflows ? .max : product
    }

    /// The size of the decoded image in bytes, 4 for each of ``pixels``; negative if their number is, and `Int.max` if
    /// the product overflows in either direction.
    public var decodedBytes: Int {
        let (product, overflows) = pixels.multipliedReportingOverflow(by: 4)
        return overflows ? .max : product
    }

    /// The size as text, such as `640 × 480`.
    public var description: String { "\(width) × \(height)" }
}
