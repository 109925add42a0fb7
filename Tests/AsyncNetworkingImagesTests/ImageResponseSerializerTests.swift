// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@Suite struct ImageResponseSerializerTests {
    private let png = SamplePicture.png

    @Test func `a session returns an image with its header`() async throws {
        let api = SessionManager {
            $0.transport = MockTransport(.data(SamplePicture.png, headers: [.contentType: "image/png"]))
        }
        let image = try await api.get("http://localhost/logo", as: .image).value
        #expect(image.header.format == .png)
        #expect(image.header.size == SamplePicture.size)
        #expect(image.data == png)
        #expect(image.bitmap == nil)
        #expect(image.memoryCost == png.count)
        #expect("\(image)" == "png, 5 × 3")
    }

    @Test(
        arguments: [
            ("image/tiff", true), ("image/jpeg", true), ("image/gif", true), ("image/png", true), ("image/ico", true),
            ("image/x-icon", true), ("image/bmp", true), ("image/x-bmp", true), ("image/x-xbitmap", true),
            ("image/x-win-bitmap", true), ("image/webp", true), ("image/avif", true), ("image/heif", true),
            ("image/heic", true), ("image/vnd.microsoft.icon", true), ("IMAGE/PNG; charset=binary", true),
            ("image/svg+xml", false), ("text/html", false), ("application/octet-stream", false), (nil, false),
        ] as [(String?, Bool)])
    func `the media types of images are accepted`(type: String?, isAccepted: Bool) {
        let result = Result { try value(type: type) }
        #expect(((try? result.get()) != nil) == isAccepted)
        guard case .failure(let error) = result else { return }
        #expect((error as? SerializationError)?.rejection?.rejectsMediaType == true)
    }

    @Test func `data that are not an image throw an error`() {
        #expect(throws: ImageError.unknownFormat) { try value(of: Data("<html>".utf8)) }
        #expect(throws: ImageError.truncated(.png)) { try value(of: png.prefix(20)) }
        let error = #expect(throws: SerializationError.self) { try value(of: Data()) }
        guard case .emptyBody(status: 200, wanted: "image", url: _) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `the format is that of the file, not of the media type`() throws {
        let gif = try #require(SamplePicture.all.first { $0.format == .gif }).data
        #expect(try value(type: "image/jpeg", of: gif).header.format == .gif)
    }

    @Test func `an image with more pixels than the limit is refused without the decoder`() throws {
        let bomb = Header.png(width: 50_000, height: 50_000)
        let size = PixelSize(width: 50_000, height: 50_000)
        let decoder = CountingDecoder()
        #expect(throws: ImageError.tooManyPixels(size, limit: 128 << 20)) { try value(of: bomb) }
        #expect(throws: ImageError.tooManyPixels(size, limit: 128 << 20)) {
            try value(.image(decodedBy: decoder), of: bomb)
        }
        let narrow = Header.png(width: 128 << 20, height: 1)
        #expect(try value(of: narrow).header.size.width == 128 << 20)
        var options = ImageDecodingOptions()
        options.limits.decodedBytes = 59
        #expect(throws: ImageError.tooManyBytes(SamplePicture.size, limit: 59)) {
            try value(.image(decodedBy: decoder, options: options))
        }
        #expect(decoder.calls == 0)
        options.limits.decodedBytes = 60
        #expect(try value(.image(decodedBy: decoder, options: options)).bitmap != nil)
    }

    @Test func `the limit on bytes applies to the reduced size`() throws {
        var options = ImageDecodingOptions(maximumSize: PixelSize(width: 2, height: 100))
        // 5 × 3 fits into 2 × 100 as 2 × 2 at most or, rotated, as 4 × 2.
        options.limits.decodedBytes = 40
        #expect(try value(.image(decodedBy: CountingDecoder(), options: options)).bitmap != nil)
        options.limits.decodedBytes = 15
        #expect(throws: ImageError.self) { try value(.image(decodedBy: CountingDecoder(), options: options)) }
    }

    @Test func `a decoder decodes at once, and its bitmap is used later`() async throws {
        let decoder = CountingDecoder()
        let image = try value(.image(decodedBy: decoder))
        #expect(decoder.calls == 1)
        #expect(image.bitmap?.size == SamplePicture.size)
        #expect(image.memoryCost == png.count + 60)
        #expect(try await image.decoded() == image.bitmap)
        #expect(decoder.calls == 1)
    }

    @Test @MainActor func `an image is decoded later, off the caller's actor`() async throws {
        let image = try ImageContent(png)
        let decoder = CountingDecoder()
        #expect(try await image.decoded(by: decoder).size == SamplePicture.size)
        #expect(decoder.calls == 1)
        #expect(!decoder.wasOnMainThread)
        let small = ImageLimits(pixels: 14)
        await #expect(throws: ImageError.tooManyPixels(SamplePicture.size, limit: 14)) {
            try await image.decoded(by: decoder, options: ImageDecodingOptions(limits: small))
        }
        #expect(throws: ImageError.tooManyPixels(SamplePicture.size, limit: 14)) {
            try ImageContent(png, limits: small)
        }
        #expect(decoder.calls == 1)
    }

    @Test func `the scale divides the size in points`() throws {
        var serializer = ImageResponseSerializer()
        serializer.scale = 2
        let image = try value(serializer)
        #expect(image.pointSize == (2.5, 1.5))
        #expect(try ImageContent(png, scale: 0).scale == 1)
        #expect(try ImageContent(png, scale: -.infinity).scale == 1)
        #expect(try ImageContent(png, scale: .nan).pointSize == (5, 3))
    }

    @Test func `a bitmap has four bytes per pixel`() {
        #expect(Bitmap(size: PixelSize(width: 2, height: 2), pixels: Data(count: 16)) != nil)
        #expect(Bitmap(size: PixelSize(width: 2, height: 2), pixels: Data(count: 15)) == nil)
        #expect(Bitmap(size: PixelSize(width: 0, height: 2), pixels: Data()) == nil)
        #expect(Bitmap(size: PixelSize(width: -2, height: -2), pixels: Data(count: 16)) == nil)
    }

    @Test func `errors say what to check`() {
        let size = PixelSize(width: 5, height: 3)
        let errors: [ImageError] = [
            .unknownFormat, .truncated(.png), .malformed(.gif), .tooManyPixels(size, limit: 1),
            .tooManyBytes(size, limit: 1), .decoderUnavailable, .decoding(reason: "bad Huffman code"),
        ]
        #expect(Set(errors.map(\.description)).count == errors.count)
        #expect(errors.allSatisfy { $0.errorDescription == $0.description })
        #expect(ImageError.decoderUnavailable.description.contains("ImageDecoding"))
    }

    private func value(
        _ serializer: ImageResponseSerializer = .image, type: String? = "image/png", of data: Data = SamplePicture.png
    ) throws -> ImageContent {
        let url = try #require(URL(string: "http://localhost/"))
        var head = ResponseHead(status: .ok, url: url)
        if let type { head.headers[.contentType] = type }
        return try serializer.value(of: head, data)
    }
}

/// A decoder that returns black bitmaps and counts its calls.
private final class CountingDecoder: ImageDecoder {
    private let state = Lock((calls: 0, wasOnMainThread: false))

    var calls: Int { state.withLock { $0.calls } }
    var wasOnMainThread: Bool { state.withLock { $0.wasOnMainThread } }

    func decode(_ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions) throws -> Bitmap {
        state.withLock { $0 = ($0.calls + 1, $0.wasOnMainThread || Thread.isMainThread) }
        let bitmap = Bitmap(size: header.size, pixels: Data(count: header.size.decodedBytes))
        return try #require(bitmap)
    }
}
