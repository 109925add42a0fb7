// SPDX-License-Identifier: MIT

// Downloads the images of a page with progress, and writes a contact sheet in HTML:
//
//     swift run ImageGallery                  from a server in this process, to gallery.html
//     swift run ImageGallery URL [FILE]       of another page

import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import FoundationEssentials

/// Returns the URLs of the images in a page: the values of `src` in its elements `img`.
func imageURLs(in page: String, at url: URL) -> [URL] {
    page.matches(of: /<img[^>]*?\ssrc\s*=\s*["']([^"']+)["']/.ignoresCase()).compactMap { match in
        URL(string: String(match.1), relativeTo: url)?.absoluteURL
    }
}

/// Downloads an image, prints its size when its header arrives, and returns an entry of the contact sheet.
func entry(_ url: URL, _ images: ImageDownloader) async -> String {
    let name = escaped(url.lastPathComponent)
    let download = images.download(Request(url: url, headers: [.accept: "image/*"]))
    var isPrinted = false
    for await status in download.updates {
        if let header = status.header, !isPrinted {
            print("\(url.lastPathComponent): \(header.format), \(header.size)")
            isPrinted = true
        }
    }
    do {
        let image = try await download.image
        let (width, height) = image.pointSize
        let scale = min(1, 240 / max(width, height))
        let source = "data:\(image.header.format.mediaType);base64,\(image.data.base64EncodedString())"
        return """
            <figure><img src="\(source)" width="\(Int(width * scale))" height="\(Int(height * scale))" alt="\(name)">
            <figcaption>\(name)<br>\(image.header.size), \(image.data.count) bytes</figcaption></figure>
            """
    } catch {
        print("\(url.lastPathComponent): \(error)")
        return "<figure><figcaption>\(name)<br>\(escaped("\(error)"))</figcaption></figure>"
    }
}

func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
}

func writeGallery(of page: URL, to path: String) async throws {
    let session = SessionManager()
    let images = ImageDownloader(session: session)
    let urls = imageURLs(in: try await session.get(page, as: .string).value, at: page)
    let entries = await withTaskGroup(of: (Int, String).self) { group in
        for (index, url) in urls.enumerated() {
            group.addTask { (index, await entry(url, images)) }
        }
        var entries = Array(repeating: "", count: urls.count)
        for await (index, text) in group {
            entries[index] = text
            print("\(entries.count { !$0.isEmpty }) of \(urls.count)")
        }
        return entries
    }
    let sheet = """
        <!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Contact sheet</title>
        <style>
        body { font-family: sans-serif; display: flex; flex-wrap: wrap; gap: 16px; background: #f4f4f4 }
        figure { margin: 0; padding: 12px; background: white; width: 240px; text-align: center }
        figcaption { margin-top: 8px; font-size: 12px; color: #444; overflow-wrap: anywhere }
        </style>
        \(entries.joined(separator: "\n"))
        </html>
        """
    try Data(sheet.utf8).write(to: URL(filePath: path))
    print("\(path) has \(urls.count) images.")
}

/// Returns a bitmap with a gradient, in the format BMP: 24 bits per pixel, rows from bottom to top.
func gradient(width: Int, height: Int, red: Int, green: Int) -> Data {
    func bytes(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    let row = (width * 3 + 3) / 4 * 4
    var data = Data("BM".utf8)
    for value in [54 + row * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, row * height, 2835, 2835, 0, 0] {
        data += bytes(value, 4)
    }
    for y in 0..<height {
        for x in 0..<width { data += bytes(255 * x / width | green * y / height << 8 | red << 16, 3) }
        data += bytes(0, row - width * 3)
    }
    return data
}

do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if let page = arguments.first {
        guard let url = URL(string: page) else { throw CancellationError() }
        try await writeGallery(of: url, to: arguments.count > 1 ? arguments[1] : "gallery.html")
    } else {
        try await StubServer.with { server in
            let pictures = (0..<12).map { "picture\($0).bmp" }
            let elements = pictures.map { #"<p><img alt="" src="\#($0)"></p>"# }
            server.route("/", .reply(headers: ["Content-Type": "text/html"], body: .string(elements.joined())))
            for (index, name) in pictures.enumerated() {
                let picture = gradient(width: 160 + 8 * index, height: 120, red: 20 * index, green: 255 - 20 * index)
                server.route("/\(name)", .data(picture, headers: ["Content-Type": "image/bmp"]))
            }
            try await writeGallery(of: server.url("/"), to: "gallery.html")
        }
    }
} catch {
    print(error)
}
