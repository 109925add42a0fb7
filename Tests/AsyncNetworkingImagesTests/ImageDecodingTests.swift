// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking
import AsyncNetworkingImages
import Foundation
import Glibc
import TestSupport
import Testing

/// Decoding with libvips: tests that run if the package is built with the trait, as `make test` does if libvips is installed.
@Suite(.enabled(if: isImageDecodingEnabled, "The trait ImageDecoding is not enabled."), .timeLimit(.minutes(5)))
struct ImageDecodingTests {
    private let size = PixelSize(width: 64, height: 48)

    @Test(
        arguments: [
            (".png", .png), (".jpg[Q=95]", .jpeg), (".gif", .gif), (".webp[lossless]", .webp), (".webp[Q=90]", .webp),
            (".tiff", .tiff), (".avif[Q=90]", .avif), (".heic[Q=90]", .heif),
        ] as [(String, ImageFormat)])
    func `a picture is decoded to its pixels`(suffix: String, format: ImageFormat) async throws {
        let image = try await ImageContent(Picture.halves(suffix))
        #expect(image.header == (try ImageHeader(image.data)))
        #expect(image.header.format == format)
        #expect(image.header.size == size)
        let bitmap = try await image.decoded()
        #expect(bitmap.size == size)
        #expect(bitmap.pixels.count == 64 * 48 * 4)
        #expect(bitmap.isNear(red: 255, green: 0, blue: 0, x: 4, y: 4))
        #expect(bitmap.isNear(red: 0, green: 0, blue: 255, x: 60, y: 44))
    }

    @Test(arguments: [
        ("grey", [["copy", "grey.v", "out.png", "--interpretation", "b-w"]]),
        ("grey with alpha", [["bandjoin_const", "grey.v", "out.png", "255"]]),
        (
            "16 bits",
            [
                ["linear", "grey.v", "wide.v", "257", "0"], ["cast", "wide.v", "short.v", "ushort"],
                ["copy", "short.v", "out.png", "--interpretation", "grey16"],
            ]
        ),
    ])
    func `other kinds of pixels become RGBA`(kind: String, operations: [[String]]) async throws {
        let grey = [["black", "black.v", "8", "8"], ["linear", "black.v", "grey.v", "1", "128", "--uchar"]]
        let bitmap = try await ImageContent(Picture.made(".png", by: grey + operations)).decoded()
        #expect(bitmap.pixels.count == 8 * 8 * 4)
        #expect(bitmap.isNear(red: 128, green: 128, blue: 128, x: 3, y: 3), "\(kind)")
    }

    @Test func `colours are converted from the profile of the picture`() async throws {
        let red =
            Self.shade("255 0 0").dropLast() + [
                ["copy", "color.v", "red.v", "--interpretation", "srgb"],
                ["icc_transform", "red.v", "out.png", "p3", "--input-profile", "srgb"],
            ]
        let bitmap = try await ImageContent(Picture.made(".png", by: Array(red))).decoded()
        #expect(bitmap.isNear(red: 255, green: 0, blue: 0, x: 3, y: 3))
    }

    @Test(arguments: [(16, 100, 16, 12), (100, 12, 16, 12), (64, 48, 64, 48), (1_000, 1_000, 64, 48), (1, 1, 1, 1)])
    func `a picture is reduced to fit, and never enlarged`(width: Int, height: Int, fits: Int, high: Int) async throws {
        for suffix in [".jpg[Q=95]", ".png"] {
            let options = ImageDecodingOptions(maximumSize: PixelSize(width: width, height: height))
            let bitmap = try await ImageContent(Picture.halves(suffix)).decoded(options: options)
            #expect(bitmap.size == PixelSize(width: fits, height: high))
        }
    }

    @Test(arguments: [(1, 64, 48, 4, 4), (3, 64, 48, 60, 44), (6, 48, 64, 44, 4), (8, 48, 64, 4, 60)])
    func `the orientation of EXIF is applied`(
        orientation: UInt8, width: Int, height: Int, x: Int, y: Int
    ) async throws {
        let image = try await ImageContent(Self.jpeg(Picture.halves(".jpg[Q=95,strip]"), orientation: orientation))
        #expect(image.header.size == size)
        let bitmap = try await image.decoded()
        #expect(bitmap.size == PixelSize(width: width, height: height))
        #expect(bitmap.isNear(red: 255, green: 0, blue: 0, x: x, y: y))
        let plain = try await image.decoded(options: ImageDecodingOptions(appliesOrientation: false))
        #expect(plain.size == size)
        #expect(plain.isNear(red: 255, green: 0, blue: 0, x: 4, y: 4))
        let small = ImageDecodingOptions(maximumSize: PixelSize(width: 24, height: 24))
        let reduced = try await image.decoded(options: small)
        #expect(max(reduced.size.width, reduced.size.height) == 24)
        #expect((reduced.size.width < reduced.size.height) == (width < height))
    }

    @Test(arguments: [".png", ".jpg[Q=95]", ".webp[lossless]", ".tiff", ".gif", ".heic[Q=90]"])
    func `a truncated or damaged picture is an error or a bitmap within the limits`(suffix: String) async throws {
        let data = try await Picture.halves(suffix)
        for length in stride(from: data.count - 1, to: 0, by: -max(1, data.count / 40)) {
            guard let image = try? ImageContent(data.prefix(length)) else { continue }
            await check(image)
        }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<40 {
            var damaged = data
            for _ in 0..<4 {
                damaged[Int.random(in: 12..<damaged.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            guard let image = try? ImageContent(damaged, limits: Self.small) else { continue }
            await check(image)
        }
    }

    @Test(arguments: [".png", ".jpg", ".webp", ".tiff"])
    func `half a picture is an error`(suffix: String) async throws {
        let noise = [
            ["gaussnoise", "noise.v", "64", "48", "--mean", "128"], ["cast", "noise.v", "out\(suffix)", "uchar"],
        ]
        let data = try await Picture.made(suffix, by: noise)
        #expect(try await ImageContent(data).decoded().size == size)
        // At the address of the whole picture, which libvips may have cached.
        guard let half = try? ImageContent(data.prefix(data.count / 2)) else { return }
        await #expect(throws: ImageError.self) { try await half.decoded() }
    }

    private static let small = ImageLimits(pixels: 1 << 20, decodedBytes: 4 << 20)

    /// Decodes a picture, which either fails with an error or results in as many pixels as the bitmap says.
    private func check(_ image: ImageContent) async {
        do {
            let bitmap = try await image.decoded(options: ImageDecodingOptions(limits: Self.small))
            #expect(bitmap.pixels.count == bitmap.size.decodedBytes)
            #expect(bitmap.size.pixels <= Self.small.pixels)
        } catch {
            #expect(error is ImageError, "\(error)")
        }
    }

    @Test func `deep pixels count with their own size, and the error has the limit that was set`() async throws {
        // 16 bits for each of red, green, blue and alpha.
        let image = try await ImageContent(
            Picture.made(
                ".png",
                by: [
                    ["black", "black.v", "8", "6", "--bands", "4"], ["cast", "black.v", "short.v", "ushort"],
                    ["copy", "short.v", "out.png", "--interpretation", "rgb16"],
                ]))
        func decode(_ limit: Int) async throws -> Bitmap {
            try await image.decoded(options: ImageDecodingOptions(limits: ImageLimits(decodedBytes: limit)))
        }
        let error = await #expect(throws: ImageError.self) { try await decode(8 * 6 * 8 - 1) }
        #expect(error == .tooManyBytes(PixelSize(width: 8, height: 6), limit: 383))
        #expect(
            error?.description
                == "The image has 8 × 6 pixels, for which decoding takes more than the limit of 383 bytes; "
                + "see ImageLimits.decodedBytes.")
        #expect(try await decode(8 * 6 * 8).pixels.count == 8 * 6 * 4)
    }

    @Test func `a header that lies about the size is an error`() async throws {
        var data = try await Picture.halves(".png")
        // The width in IHDR becomes 50,000; its checksum no longer fits.
        data.replaceSubrange(16..<20, with: [0, 0, 0xC3, 0x50])
        let image = try ImageContent(data)
        #expect(image.header.size.width == 50_000)
        await #expect(throws: ImageError.self) { try await image.decoded() }
        // The height, too: 2.5 billion pixels are refused before a decoder sees them.
        data.replaceSubrange(20..<24, with: [0, 0, 0xC3, 0x50])
        #expect(throws: ImageError.self) { try ImageContent(data) }
        let unlimited = ImageLimits(pixels: .max, decodedBytes: .max)
        let bomb = try ImageContent(data, limits: unlimited)
        await #expect(throws: ImageError.self) { try await bomb.decoded() }
    }

    @Test(.exitTest) func `a bomb of 400 million pixels takes little memory`() async throws {
        await #expect(processExitsWith: .success) {
            // A file of 50 KB.
            let bomb = try await Picture.made(".png", by: [["black", "out.png[bitdepth=1]", "20000", "20000"]])
            let before = peakKilobytes()
            #expect(throws: ImageError.self) { try ImageContent(bomb) }
            let image = try ImageContent(bomb, limits: ImageLimits(pixels: .max, decodedBytes: .max))
            await #expect(throws: ImageError.self) { try await image.decoded() }
            let onlyBytes = ImageDecodingOptions(limits: ImageLimits(pixels: .max))
            await #expect(throws: ImageError.self) { try await image.decoded(options: onlyBytes) }
            let small = PixelSize(width: 64, height: 64)
            let reduced = ImageDecodingOptions(maximumSize: small, limits: ImageLimits(pixels: .max))
            #expect(try await image.decoded(options: reduced).size == small)
            // The image itself would take 1.6 GB.
            #expect(peakKilobytes() - before < 256 << 10)
        }
    }

    @Test(.exitTest) func `a small picture with thousands of channels takes little memory`() async throws {
        await #expect(processExitsWith: .success) {
            var bomb = try await Picture.made(
                ".tif",
                by: [
                    ["black", "black.v", "160", "160", "--bands", "3000"], ["cast", "black.v", "float.v", "float"],
                    ["tiffsave", "float.v", "out.tif", "--compression", "deflate"],
                ])
            // Turned, for which libvips keeps all pixels: the orientation, which has the tag 274, is 6.
            let orientation = Data([0x12, 1, 3, 0, 1, 0, 0, 0])
            let entry = try #require(bomb.firstRange(of: orientation))
            bomb[entry.upperBound] = 6
            let before = peakKilobytes()
            await #expect(throws: ImageError.self) { try await ImageContent(bomb).decoded() }
            #expect(peakKilobytes() - before < 256 << 10)
        }
    }

    @Test func `a format without a loader is an error`() async throws {
        let bitmap = Data("BM".utf8) + Data(count: 12) + Data([40, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]) + Data(count: 64)
        let error = await #expect(throws: ImageError.self) { try await ImageContent(bitmap).decoded() }
        #expect(error?.description.contains("bmp") == true)
    }

    @Test func `pictures are decoded concurrently, and are not confused`() async throws {
        let red = try await ImageContent(Picture.made(".png", by: Self.shade("255 0 0")))
        let blue = try await ImageContent(Picture.made(".png", by: Self.shade("0 0 255")))
        try await withThrowingTaskGroup { group in
            for index in 0..<64 {
                let image = index.isMultiple(of: 2) ? red : blue
                group.addTask {
                    // A new buffer, possibly in the place of an earlier one.
                    let copy = try ImageContent(Data(Array(image.data)))
                    let bitmap = try await copy.decoded()
                    #expect(
                        bitmap.isNear(red: image == red ? 255 : 0, green: 0, blue: image == red ? 0 : 255, x: 9, y: 9))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `the shim inflates small PNG and JPEG images`() async throws {
        let serializer = AFImageResponseSerializer()
        func image(_ suffix: String) async throws -> UIImage? {
            var error: NSError?
            let response = HTTPURLResponse(
                url: URL(filePath: "/"), statusCode: 200, httpVersion: nil,
                headerFields: ["Content-Type": suffix == ".gif" ? "image/gif" : "image/png"])
            let object = serializer.responseObject(for: response, data: try await Picture.halves(suffix), error: &error)
            #expect(error == nil)
            return object as? UIImage
        }
        #expect(try await image(".png")?.content.bitmap?.size == size)
        #expect(try await image(".jpg")?.content.bitmap?.size == size)
        #expect(try await image(".gif")?.content.bitmap == nil)
        serializer.automaticallyInflatesResponseImage = false
        #expect(try await image(".png")?.content.bitmap == nil)
    }

    private static func shade(_ color: String) -> [[String]] {
        [
            ["black", "black.v", "32", "32", "--bands", "3"], ["linear", "black.v", "color.v", "1", color, "--uchar"],
            ["copy", "color.v", "out.png", "--interpretation", "srgb"],
        ]
    }

    /// Returns a JPEG with an EXIF segment that has only the orientation (tag 274).
    private static func jpeg(_ data: Data, orientation: UInt8) -> Data {
        let exif =
            Data("Exif\0\0MM\0*".utf8) + Data([0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0])
            + Data(count: 4)
        return data.prefix(2) + Data([0xFF, 0xE1, 0, UInt8(exif.count + 2)]) + exif + data.dropFirst(2)
    }
}

/// The largest resident memory of this process so far, in kilobytes. See getrusage(2).
private func peakKilobytes() -> Int {
    var usage = rusage()
    unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_maxrss
}

extension Bitmap {
    fileprivate func isNear(red: Int, green: Int, blue: Int, x: Int, y: Int) -> Bool {
        let start = pixels.startIndex + 4 * (y * size.width + x)
        return zip(pixels[start..<(start + 4)], [red, green, blue, 255]).allSatisfy { abs(Int($0) - $1) <= 12 }
    }
}

#if ImageDecoding
    private let isImageDecodingEnabled = true
#else
    private let isImageDecodingEnabled = false
#endif
