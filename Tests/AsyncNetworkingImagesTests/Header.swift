// SPDX-License-Identifier: MIT

import AsyncNetworkingImages
import Foundation

/// The beginning of a picture without pixels, and the size that it declares.
struct Header: CustomStringConvertible, Sendable {
    let description: String
    let size: PixelSize
    let data: Data

    private init(_ description: String, _ width: Int, _ height: Int, _ data: Data) {
        self.description = description
        size = PixelSize(width: width, height: height)
        self.data = data
    }

    static let all = [
        Header("a PNG", 50_000, 50_000, png(width: 50_000, height: 50_000)),
        Header("a baseline JPEG", 4_000, 3_000, jpeg(width: 4_000, height: 3_000)),
        Header("a progressive JPEG", 65_535, 1, jpeg(marker: 0xC2, width: 65_535, height: 1)),
        Header("a JPEG with 200 KB of metadata", 7, 9, jpeg(metadata: [65_000, 65_000, 65_000], width: 7, height: 9)),
        Header(
            "a JPEG with fill bytes and restart markers", 7, 9,
            jpeg(between: [0xFF, 0xFF, 0xFF, 0xD0], width: 7, height: 9)),
        Header(
            "a JPEG with a Huffman table before the frame", 7, 9,
            jpeg(between: [0xFF, 0xC4, 0, 3, 1], width: 7, height: 9)),
        Header("GIF87a", 300, 2, Data("GIF87a".utf8) + little16(300) + little16(2)),
        Header(
            "the largest extended WebP", 1 << 24, 1 << 24,
            Data("RIFF    WEBPVP8X        ".utf8) + Data(repeating: 0xFF, count: 6)),
        Header(
            "the largest lossless WebP", 1 << 14, 1 << 14,
            Data("RIFF    WEBPVP8L    ".utf8) + Data([0x2F, 0xFF, 0xFF, 0xFF, 0x0F])),
        Header(
            "a lossy WebP with scaling bits", 16, 8,
            Data("RIFF    WEBPVP8        ".utf8) + Data([0x9D, 0x01, 0x2A, 16, 0x40, 8, 0xC0])),
        Header("a bitmap stored from top to bottom", 640, 480, bmp(width: 640, height: -480)),
        Header("the bitmap with the most negative height", 1, 1 << 31, bmp(width: 1, height: Int(Int32.min))),
        Header("a big-endian TIFF", 70_000, 3, tiff([(254, 4, 0), (256, 4, 70_000), (257, 3, 3)])),
        Header("a TIFF with the height first", 5, 3, tiff([(257, 3, 3), (256, 3, 5)])),
        Header("an icon of 256 pixels", 256, 256, ico([(16, 16), (0, 0), (32, 32)])),
        Header("an icon in PNG, larger than declared", 50_000, 2, ico([(16, 16)]) + png(width: 50_000, height: 2)),
        Header(
            "an AVIF with a thumbnail before the primary item", 40, 30,
            mediaFile([meta(primary: 2, sizes: [(4, 3), (40, 30)], associations: [1: [1], 2: [2]])])),
        Header(
            "an AVIF with wide identifiers", 40, 30,
            mediaFile([
                meta(primary: 70_000, sizes: [(4, 3), (40, 30)], associations: [1: [1], 70_000: [2]], isWide: true)
            ])),
        Header(
            "an AVIF whose brand is that of all images", 40, 30,
            box("ftyp", Data("mif1".utf8) + Data(count: 4) + Data("miafavif".utf8))
                + meta(primary: 1, sizes: [(40, 30)], associations: [1: [1]])),
        Header(
            "an AVIF whose last box extends to the end of the file", 40, 30,
            mediaFile([Data(count: 4) + meta(primary: 1, sizes: [(40, 30)], associations: [1: [1]]).dropFirst(4)])),
        Header(
            "an AVIF with a box with a long size", 40, 30,
            mediaFile([longBox("free", Data(count: 5)), meta(primary: 1, sizes: [(40, 30)], associations: [1: [1]])])),
    ]

    // MARK: Files

    static func png(width: Int, height: Int) -> Data {
        Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) + big32(13) + Data("IHDR".utf8) + big32(width)
            + big32(height) + Data([8, 0, 0, 0, 0])
    }

    static func jpeg(
        marker: UInt8 = 0xC0, metadata: [Int] = [], between: [UInt8] = [], width: Int, height: Int
    ) -> Data {
        var data = Data([0xFF, 0xD8])
        for length in metadata {
            // The metadata contain the start of a frame of another size.
            data +=
                Data([0xFF, 0xE1]) + big16(length) + Data([0xFF, 0xC0, 0, 11, 8, 0, 1, 0, 1]) + Data(count: length - 11)
        }
        return data + Data(between) + Data([0xFF, marker, 0, 11, 8]) + big16(height) + big16(width)
    }

    static func bmp(width: Int, height: Int) -> Data {
        Data("BM".utf8) + Data(count: 12) + little32(40) + little32(width) + little32(height)
    }

    /// A big-endian TIFF with entries: tag, type, value.
    static func tiff(_ entries: [(Int, Int, Int)]) -> Data {
        var data = Data("MM\0*".utf8) + big32(10) + Data(count: 2) + big16(entries.count)
        for (tag, type, value) in entries {
            data += big16(tag) + big16(type) + big32(1) + (type == 4 ? big32(value) : big16(value) + Data(count: 2))
        }
        return data
    }

    /// An icon file whose images all begin after the directory.
    static func ico(_ sizes: [(UInt8, UInt8)]) -> Data {
        var data = Data([0, 0, 1, 0]) + little16(sizes.count)
        for (width, height) in sizes {
            data += Data([width, height]) + Data(count: 10) + little32(6 + 16 * sizes.count)
        }
        return data
    }

    /// An AVIF file with boxes.
    static func mediaFile(_ boxes: [Data]) -> Data {
        boxes.reduce(box("ftyp", Data("avif".utf8) + Data(count: 4))) { $0 + $1 }
    }

    /// A box `meta` with a property for each size.
    static func meta(
        primary: Int, sizes: [(Int, Int)], associations: [Int: [UInt8]], isWide: Bool = false
    ) -> Data {
        let identifier = isWide ? big32 : big16
        let version = Data([isWide ? 1 : 0, 0, 0, 0])
        var properties = Data()
        for (width, height) in sizes {
            properties += box("pixi", Data(count: 1)) + box("ispe", Data(count: 4) + big32(width) + big32(height))
        }
        var links = big32(associations.count)
        for (item, indices) in associations.sorted(by: { $0.key < $1.key }) {
            // The size is the second property of each pair; the highest bit marks it as essential.
            links +=
                identifier(item) + Data([UInt8(indices.count)]) + Data(indices.map { $0 == 0 ? 0 : ($0 &* 2) | 0x80 })
        }
        return box(
            "meta",
            Data(count: 4) + box("hdlr", Data(count: 20)) + box("pitm", version + identifier(primary))
                + box("iprp", box("ipco", properties) + box("ipma", version + links)))
    }

    static func box(_ type: String, _ content: Data) -> Data {
        big32(8 + content.count) + Data(type.utf8) + content
    }

    private static func longBox(_ type: String, _ content: Data) -> Data {
        big32(1) + Data(type.utf8) + big32(0) + big32(16 + content.count) + content
    }

    // MARK: Integers

    private static func big16(_ value: Int) -> Data { Data(big32(value).dropFirst(2)) }
    private static func big32(_ value: Int) -> Data { Data(little32(value).reversed()) }
    private static func little16(_ value: Int) -> Data { little32(value).prefix(2) }
    private static func little32(_ value: Int) -> Data {
        Data((0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
    }
}
