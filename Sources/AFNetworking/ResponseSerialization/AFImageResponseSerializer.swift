// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworkingImages

/// A serializer that returns an ``AFImage``.
///
/// It accepts the media types of AFNetworking: TIFF, JPEG, GIF, PNG, icons and bitmaps, and by default the status codes
/// 200 to 299. Others, such as `image/webp`, can be added to ``AFHTTPResponseSerializer/acceptableContentTypes``. For
/// data that are not an image of a known format, or exceed 128 Mi pixels or 512 MiB when decoded, the error is -1016 of
/// ``AFURLResponseSerializationErrorDomain``, where AFNetworking returned neither an object nor an error. For an empty
/// body there is neither.
open class AFImageResponseSerializer: AFHTTPResponseSerializer, BodyConverter, @unchecked Sendable {
    private static let contentTypes: Set = [
        "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp", "image/x-bmp",
        "image/x-xbitmap", "image/x-win-bitmap",
    ]
    /// AFNetworking decoded no larger images at once.
    private static let maximumInflatedPixels = 1_024 * 1_024

    /// Creates a serializer for images with a scale of 1, which accepts the media types of AFNetworking and the status
    /// codes 200 to 299.
    public override init() {
        super.init(Settings(contentTypes: Self.contentTypes))
    }

    /// The number of pixels per point of the images, by which their size in points is determined. Default: 1, as there
    /// is no screen; a value that is not positive counts as 1.
    open var imageScale: CGFloat {
        get { CGFloat(settings.withLock { $0.imageScale } ?? 1) }
        set { settings.withLock { $0.imageScale = Double(newValue) } }
    }

    /// Whether PNG and JPEG images of up to 1024 × 1024 pixels are decoded before the completion handler is called, not
    /// on its queue. Default: `true`. Others, and those that cannot be decoded, have no pixels; so have all images
    /// unless the package trait `ImageDecoding` is enabled.
    open var automaticallyInflatesResponseImage: Bool {
        get { settings.withLock { $0.inflatesImages } ?? true }
        set { settings.withLock { $0.inflatesImages = newValue } }
    }

    func convert(_ data: Data?) throws -> Any? {
        guard let data, !data.isEmpty else { return nil }
        do throws(ImageError) {
            return AFImage(inflated(try ImageContent(data, scale: imageScale)))
        } catch {
            throw NSError(
                domain: AFURLResponseSerializationErrorDomain, code: URLError.Code.cannotDecodeContentData.rawValue,
                userInfo: [NSLocalizedDescriptionKey: error.description, NSUnderlyingErrorKey: error])
        }
    }

    /// Returns the image with its pixels if it is to be decoded at once, and can be; otherwise the image itself.
    private func inflated(_ image: ImageContent) -> ImageContent {
        guard automaticallyInflatesResponseImage, image.header.format == .png || image.header.format == .jpeg,
            image.header.size.pixels <= Self.maximumInflatedPixels
        else { return image }
        return image.inflated() ?? image
    }

    /// Creates a serializer from an archive of its acceptable responses and options; `nil` if these are missing or
    /// cannot be decoded, as in an archive of AFNetworking itself.
    public required init?(coder: NSCoder) {
        super.init(coder: coder)
    }

    override func makeEmptyCopy() -> AFHTTPResponseSerializer { AFImageResponseSerializer() }
}
