// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingImages
import ClientKit
import CostKit
import Foundation

/// Measures the image cache and the image decoder, and fails if a limit is missed.
///
/// - The hits per second of processor time in a cache of 1,000 images, on one core.
/// - The time to make thumbnails of 100 JPEGs of 12 megapixels, compared with `vipsthumbnail` on the same files.
@main
struct ImageCost {
    static func main() async throws {
        try await measure()
    }

    /// Measures on the global executor: `main` runs on the main actor, also if it is declared `@concurrent`.
    @concurrent private static func measure() async throws {
        var bars = Bars()
        try await measureHits(&bars)
        try await measureThumbnails(&bars)
        if bars.isAnyMissed { exit(1) }
    }

    private static func measureHits(_ bars: inout Bars) async throws {
        let png =
            Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13]) + Data("IHDR".utf8)
            + Data([0, 0, 0, 5, 0, 0, 0, 3, 8, 2, 0, 0, 0])
        let image = try ImageContent(png)
        let cache = AutoPurgingImageCache()
        let keys = (0..<1_000).compactMap { URL(string: "https://images.example.com/\($0).png") }
            .map { ImageCacheKey($0, headers: [.accept: "image/*"]) }
        for key in keys { cache.add(image, for: key) }
        func look(_ count: Int) throws {
            for index in 0..<count where cache.image(for: keys[index % keys.count]) == nil {
                throw CancellationError()
            }
        }
        var best: Cost?
        for _ in 0..<5 { best = Cost.min(best, try await .measure(500_000, look)) }
        guard let best else { throw CancellationError() }
        let rate = 1e6 / best.microseconds
        bars.check("Hits in the image cache: \(Int(rate))/s, \(best)", 500_000 / rate, atMost: 1)
    }

    private static func measureThumbnails(_ bars: inout Bars) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "an-image-cost-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try run("vips", ["perlin", "grey.v", "4000", "3000", "--cell-size", "64"], directory)
        try run("vips", ["scale", "grey.v", "scaled.v"], directory)
        try run("vips", ["bandjoin", "scaled.v scaled.v scaled.v", "color.v"], directory)
        try run("vips", ["copy", "color.v", "0.jpg", "--interpretation", "srgb"], directory)
        let names = (0..<100).map { "\($0).jpg" }
        for name in names.dropFirst() {
            try FileManager.default.copyItem(
                at: directory.appending(path: "0.jpg"), to: directory.appending(path: name))
        }
        let options = ImageDecodingOptions(maximumSize: PixelSize(width: 128, height: 128))
        var (own, tool) = (Double.infinity, Double.infinity)
        for _ in 0..<3 {
            var start = ContinuousClock.now
            try run("vipsthumbnail", ["--size", "128x128", "--output", "%s.png"] + names, directory)
            tool = min(tool, (ContinuousClock.now - start) / .seconds(1))
            start = ContinuousClock.now
            for name in names {
                let image = try ImageContent(Data(contentsOf: directory.appending(path: name)))
                let bitmap = try await image.decoded(options: options)
                guard bitmap.size == PixelSize(width: 128, height: 96) else { throw CancellationError() }
            }
            own = min(own, (ContinuousClock.now - start) / .seconds(1))
        }
        bars.check("Thumbnails of 100 JPEGs: \(own) s, vipsthumbnail: \(tool) s", own / tool, atMost: 1.2)
    }

    private static func run(_ tool: String, _ arguments: [String], _ directory: URL) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/\(tool)")
        process.arguments = arguments
        process.currentDirectoryURL = directory
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CancellationError() }
    }
}
