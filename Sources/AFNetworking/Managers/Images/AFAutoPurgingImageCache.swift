// SPDX-License-Identifier: MIT

public import AsyncNetworkingImages

/// A cache of images in memory that removes those accessed least recently when it exceeds its capacity.
///
/// An image counts 4 bytes per pixel, decoded or not, and at least 1 KiB. Under memory pressure, according to the kernel's pressure stall
/// information (`Documentation/accounting/psi.rst`), all images are removed; without this information, as with a kernel
/// before 4.20, only the capacity limits the cache. All members may be used from any thread.
///
/// The methods for requests call those for identifiers, which a subclass may override. A request's identifier is its
/// URL, followed by a space, which no URL contains, and the additional identifier, if there is one. AFNetworking omitted
/// the space, so that `a/b` with `c` was the same as `a/bc`.
open class AFAutoPurgingImageCache: NSObject, AFImageRequestCache, @unchecked Sendable {
    private let store: PurgingCache<String, AFImage>

    /// Creates an empty cache with a capacity of 100 MiB, of which at most 60 MiB remain after a purge.
    public override convenience init() {
        self.init(memoryCapacity: 100 << 20, preferredMemoryCapacity: 60 << 20)
    }

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - memoryCapacity: The memory in bytes above which images are removed.
    ///   - preferredMemoryCapacity: The memory in bytes down to which images are then removed; a value above the
    ///     capacity counts as the capacity.
    public init(memoryCapacity: UInt64, preferredMemoryCapacity: UInt64) {
        store = PurgingCache(
            capacity: Int(clamping: memoryCapacity), preferredUse: Int(clamping: preferredMemoryCapacity),
            memoryPressure: MemoryPressure())
        super.init()
    }

    // MARK: Memory

    /// The memory in bytes above which images are removed; 100 MiB by default. A change takes effect when the next
    /// image is added.
    open var memoryCapacity: UInt64 {
        get { UInt64(store.capacity) }
        set { store.capacity = Int(clamping: newValue) }
    }

    /// The memory in bytes down to which images are removed when the capacity is exceeded; 60 MiB by default. A value
    /// above ``memoryCapacity`` counts as the capacity. A change takes effect when the next image is added.
    open var preferredMemoryUsageAfterPurge: UInt64 {
        get { UInt64(store.preferredUse) }
        set { store.preferredUse = Int(clamping: newValue) }
    }

    /// The memory in bytes of the images in the cache, at 4 bytes per pixel, and at least 1 KiB for each; their files do not
    /// count.
    open var memoryUsage: UInt64 { UInt64(store.use) }

    // MARK: Identifiers

    /// Adds an image as the one accessed last, in place of one with the same identifier.
    ///
    /// If that exceeds ``memoryCapacity``, the images that were accessed least recently are removed until at most
    /// ``preferredMemoryUsageAfterPurge`` is in use; also this one if it alone exceeds that. An image counts 4 bytes
    /// per pixel.
    open func add(_ image: UIImage, withIdentifier identifier: String) {
        store.add(image, for: identifier, cost: image.content.header.size.decodedBytes)
    }

    /// Removes the image with an identifier.
    ///
    /// - Returns: Whether the cache had such an image.
    @discardableResult
    open func removeImage(withIdentifier identifier: String) -> Bool {
        store.remove(identifier)
    }

    /// Removes all images.
    ///
    /// - Returns: Whether the cache had any images.
    @discardableResult
    open func removeAllImages() -> Bool {
        store.removeAll()
    }

    /// Returns the image with an identifier and marks it as accessed; `nil` if the cache does not have it.
    open func image(withIdentifier identifier: String) -> UIImage? {
        store.value(for: identifier)
    }

    // MARK: Requests

    /// Returns whether an ``AFImageDownloader`` adds an image: always `true`; a subclass may decide otherwise.
    open func shouldCache(
        _ image: UIImage, for request: URLRequest, withAdditionalIdentifier identifier: String?
    ) -> Bool { true }

    /// Adds an image as the one accessed last, in place of one with the same URL and identifier. Without an identifier,
    /// `nil`, it is the image that ``image(withIdentifier:)`` returns for the URL. If the capacity is exceeded, images
    /// are removed, also this one if it alone exceeds ``preferredMemoryUsageAfterPurge``.
    open func add(_ image: UIImage, for request: URLRequest, withAdditionalIdentifier identifier: String?) {
        add(image, withIdentifier: self.identifier(of: request, identifier))
    }

    /// Removes the image with the URL of a request and an additional identifier (`nil` for none).
    ///
    /// - Returns: Whether the cache had such an image.
    @discardableResult
    open func removeImageforRequest(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> Bool {
        removeImage(withIdentifier: self.identifier(of: request, identifier))
    }

    /// Returns the image with the URL of a request and an additional identifier (`nil` for none), and marks it as
    /// accessed; `nil` if the cache does not have it.
    open func imageforRequest(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> UIImage? {
        image(withIdentifier: self.identifier(of: request, identifier))
    }

    private func identifier(of request: URLRequest, _ additional: String?) -> String {
        (request.url?.absoluteString ?? "") + (additional.map { " \($0)" } ?? "")
    }
}

/// A cache of images by identifier. Its methods may be called from any thread, and at the same time.
public protocol AFImageCache: NSObjectProtocol {
    /// Adds an image, in place of one with the same identifier. The cache may remove it at any time.
    func add(_ image: UIImage, withIdentifier identifier: String)
    /// Removes the image with an identifier.
    ///
    /// - Returns: Whether the cache had such an image.
    @discardableResult
    func removeImage(withIdentifier identifier: String) -> Bool
    /// Removes all images.
    ///
    /// - Returns: Whether the cache had any images.
    @discardableResult
    func removeAllImages() -> Bool
    /// Returns the image with an identifier; `nil` if the cache does not have it.
    func image(withIdentifier identifier: String) -> UIImage?
}

/// A cache of images by request and an additional identifier, for images made from the same file.
/// ``AFAutoPurgingImageCache`` identifies a request by its URL.
///
/// An ``AFImageDownloader`` calls the methods while it is locked: they must return soon, and must not use it.
public protocol AFImageRequestCache: AFImageCache {
    /// Returns whether an ``AFImageDownloader`` adds an image that it has downloaded; it passes `nil` as the additional
    /// identifier.
    func shouldCache(
        _ image: UIImage, for request: URLRequest, withAdditionalIdentifier identifier: String?
    ) -> Bool
    /// Adds an image, in place of one with the same request and additional identifier (`nil` for none). The cache may
    /// remove it at any time.
    func add(_ image: UIImage, for request: URLRequest, withAdditionalIdentifier identifier: String?)
    /// Removes the image for a request and an additional identifier (`nil` for none).
    ///
    /// - Returns: Whether the cache had such an image.
    @discardableResult
    func removeImageforRequest(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> Bool
    /// Returns the image for a request and an additional identifier (`nil` for none), or `nil` if the cache does not
    /// have it.
    func imageforRequest(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> UIImage?
}

/// An image, in place of UIKit's `UIImage`: its file, its format and size, and its pixels if it was decoded.
public final class AFImage: NSObject, Sendable {
    /// The image as the core represents it: the file, its format and size, and its pixels if it was decoded.
    public let content: ImageContent

    /// Creates an image from its content, such as an image that the core has received.
    public init(_ content: ImageContent) {
        self.content = content
        super.init()
    }

    /// Creates an image from a file, whose header is read at once; the pixels are not decoded.
    ///
    /// The result is `nil` if the format is unknown, the header is damaged, or the image exceeds 128 Mi pixels or 512
    /// MiB when decoded.
    ///
    /// - Parameters:
    ///   - data: The contents of the file.
    ///   - scale: The number of pixels per point; 1 by default, and a value that is not positive counts as 1.
    public convenience init?(data: Data, scale: CGFloat = 1) {
        guard let content = try? ImageContent(data, scale: scale) else { return nil }
        self.init(content)
    }

    /// The size in points: the number of pixels, divided by ``scale``. An EXIF rotation counts only if the pixels were
    /// decoded.
    public var size: CGSize { CGSize(width: content.pointSize.width, height: content.pointSize.height) }

    /// The number of pixels per point, which is always positive; 1 by default.
    public var scale: CGFloat { content.scale }

    /// The format and the size in pixels, as text.
    public override var description: String { "<AFImage: \(content)>" }
}

/// The name of ``AFImage`` in code that was written for UIKit. Only the members of `AFImage` are available.
public typealias UIImage = AFImage
