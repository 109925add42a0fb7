// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingImages
import FoundationEssentials

// The samples of the article "Images".

func downloadImages(_ url: URL) async throws {
    // snippet.overview
    let images = ImageDownloader()
    let logo = try await images.image(for: url)
    print(logo.header.format, logo.header.size, logo.data.count)
    // snippet.end
}

func receiveImages(_ api: SessionManager) async throws {
    // snippet.serializer
    let logo = try await api.get("logo.png", as: .image).value
    // snippet.end
    print(logo)
}

func decodeImages(_ image: ImageContent) async throws {
    // snippet.decoding
    let thumbnail = ImageDecodingOptions(maximumSize: PixelSize(width: 256, height: 256))
    let bitmap = try await image.decoded(options: thumbnail)
    print(bitmap.size, bitmap.pixels.count)
    // snippet.end
}

func decodeAtOnce(_ session: SessionManager) -> ImageDownloader {
    // snippet.eager
    let thumbnail = ImageDecodingOptions(maximumSize: PixelSize(width: 256, height: 256))
    let thumbnails = ImageDownloader(
        session: session, serializer: .image(decodedBy: .builtIn, options: thumbnail), identifier: "256")
    // snippet.end
    return thumbnails
}

func observeDownloads(_ images: ImageDownloader, _ request: Request) async throws {
    // snippet.downloads
    let download = images.download(request, priority: .high)
    for await status in download.updates {
        if let size = status.header?.size { print(size, status.progress?.fraction ?? 0) }
    }
    let image = try await download.image
    // snippet.end
    print(image)
}

func configureCache(_ session: SessionManager) -> ImageDownloader {
    // snippet.cache
    let cache = AutoPurgingImageCache(capacity: 32 << 20, preferredUse: 20 << 20)
    let images = ImageDownloader(session: session, cache: cache, order: .lifo)
    // snippet.end
    return images
}

func fillSlot(_ images: ImageDownloader, _ avatar: URL?, _ silhouette: ImageContent) async {
    // snippet.slot
    let slot = ImageSlot(images)
    slot.show(avatar, placeholder: silhouette)
    for await state in slot.states { print(state.image?.header.size ?? "nothing", state.phase) }
    // snippet.end
}

func showActivity() async {
    // snippet.activity
    let activity = NetworkActivityMonitor()
    let api = SessionManager { $0.eventMonitors = [activity] }
    for await isVisible in activity.visibility { print(isVisible ? "busy" : "idle") }
    // snippet.end
    print(api)
}
