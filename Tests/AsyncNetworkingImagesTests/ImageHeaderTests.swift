// SPDX-License-Identifier: MIT

import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@Suite struct ImageHeaderTests {
    @Test(arguments: SamplePicture.all)
    func `the format and the size of a picture are read`(picture: SamplePicture) throws {
        let header = try ImageHeader(picture.data)
        #expect(header.format == picture.format)
        #expect(header.size == SamplePicture.size)
        // The indices of a slice do not start at 0.
        let slice = (Data([1, 2, 3]) + picture.data).dropFirst(3)
        #expect(try ImageHeader(slice) == header)
    }

    @Test(arguments: SamplePicture.all)
    func `the beginning of a picture has either the same header or none`(picture: SamplePicture) {
        let data = picture.data
        var lengths: [Int] = []
        for length in 0..<data.count {
            do throws(ImageError) {
                #expect(try ImageHeader(data.prefix(length)).size == SamplePicture.size)
                lengths.append(length)
            } catch {
                #expect(error == .unknownFormat || error == .truncated(picture.format), "\(length)")
            }
        }
        // Once the header is there, it is there in every longer part.
        #expect(lengths == Array((lengths.first ?? data.count)..<data.count))
    }

    @Test(arguments: Header.all)
    func `a size is read as the format defines it`(header: Header) throws {
        #expect(try ImageHeader(header.data).size == header.size)
    }

    @Test(
        arguments: [
            (.png, Header.png(width: 0, height: 3)),
            (.png, Header.png(width: 0xFFFF_FFFF, height: 3)),
            (.png, Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) + Data("    IDAT        ".utf8)),
            // The scan, the end, a segment of length 1, and no marker, before a frame header.
            (.jpeg, Data([0xFF, 0xD8, 0xFF, 0xDA, 0, 2])),
            (.jpeg, Data([0xFF, 0xD8, 0xFF, 0xD9])),
            (.jpeg, Data([0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 0xFF])),
            (.jpeg, Data([0xFF, 0xD8, 0xFF, 0xE0, 0, 2, 0x00, 0xC0])),
            (.jpeg, Header.jpeg(width: 5, height: 0)),
            (.gif, Data("GIF89a".utf8) + Data([0, 0, 0, 0])),
            (.webp, Data("RIFF    WEBPVP8?          ".utf8)),
            (.webp, Data("RIFF    WEBPVP8L    ".utf8) + Data([0x30, 0, 0, 0, 0])),
            (.webp, Data("RIFF    WEBPVP8     ".utf8) + Data(count: 10)),
            (.bmp, Header.bmp(width: -5, height: 3)),
            (.bmp, Header.bmp(width: 5, height: 0)),
            (.tiff, Header.tiff([(256, 2, 5), (257, 3, 3)])),
            (.tiff, Header.tiff([(256, 3, 5), (258, 3, 8)])),
            (.ico, Data([0, 0, 1, 0, 0, 0])),
            (.avif, Header.mediaFile([Header.box("mdat", Data(count: 8))])),
            // A box that is shorter than its own head, and one that is longer than the one around it.
            (.avif, Header.mediaFile([Header.box("meta", Data(count: 4) + Data([0, 0, 0, 7]) + Data("pitm".utf8))])),
            (.avif, Header.mediaFile([Header.box("meta", Data(count: 4) + Data([0, 0, 1, 0]) + Data("pitm".utf8))])),
            (.avif, Header.mediaFile([Header.meta(primary: 9, sizes: [(5, 3)], associations: [1: [1]])])),
            (.avif, Header.mediaFile([Header.meta(primary: 1, sizes: [(5, 3)], associations: [1: [0, 2, 127]])])),
        ] as [(ImageFormat, Data)])
    func `a header without a valid size is malformed`(format: ImageFormat, data: Data) {
        // Appended bytes distinguish malformed headers from incomplete ones.
        let error = #expect(throws: ImageError.self) { try ImageHeader(data + Data(repeating: 0, count: 64)) }
        #expect(error == .malformed(format))
    }

    @Test(arguments: [
        "", "BM", "hello, world", "<svg xmlns='http://www.w3.org/2000/svg'/>", "RIFF    WAVE", "    ftypmp42    ",
    ])
    func `other data have no known format`(text: String) {
        #expect(throws: ImageError.unknownFormat) { try ImageHeader(Data(text.utf8)) }
    }

    @Test(arguments: SamplePicture.all)
    func `damaged pictures are read without a trap`(picture: SamplePicture) {
        var random = SplitMix64(seed: 21)
        let original = picture.data
        for _ in 0..<2_000 {
            var data = original
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                // Most changes concern the beginning, where the header is.
                let end = Bool.random(using: &random) ? min(48, data.count) : data.count
                let byte: UInt8 = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
                data[Int.random(in: 0..<end, using: &random)] = byte
            }
            if let header = try? ImageHeader(data) {
                #expect(header.size.width > 0 && header.size.height > 0)
                #expect(header.size.pixels >= header.size.width)
            }
        }
    }

    @Test func `the size of an image that is too large does not overflow`() throws {
        let size = try ImageHeader(Header.tiff([(256, 4, 0xFFFF_FFFF), (257, 4, 0xFFFF_FFFF)])).size
        #expect(size.pixels == .max)
        #expect(size.decodedBytes == .max)
        #expect(PixelSize(width: 1 << 31, height: 1 << 30).decodedBytes == .max)
        #expect(PixelSize(width: 50_000, height: 50_000).decodedBytes == 10_000_000_000)
    }

    @Test func `media types are those of the formats`() {
        #expect(ImageFormat.allCases.count == 9)
        #expect(ImageFormat.jpeg.mediaType == "image/jpeg")
        #expect(ImageFormat.ico.mediaType == "image/vnd.microsoft.icon")
        #expect(ImageFormat(SamplePicture.png) == .png)
    }
}
