// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import FoundationEssentials

/// A cache of images in memory, which each ``ImageDownloader`` that was created with it reads and fills.
///
/// If an added image raises the use above ``capacity``, the images that were not accessed for the longest time are
/// removed until the use is at most ``preferredUseAfterPurge``; the added image is then removed, too, if it alone
/// exceeds that. Under memory pressure all images are removed. Nothing is stored on disk. All members may be used from
/// any thread or task at any time, and return immediately.
public final class AutoPurgingImageCache: Sendable {
    private let store: PurgingCache<ImageCacheKey, ImageContent>

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - capacity: The use of memory in bytes above which images are removed; 100 MiB by default. With 0 or a
    ///     negative value, no image stays in the cache.
    ///   - preferredUse: The use of memory in bytes that a removal of images aims at; 60 MiB by default. A value above
    ///     the capacity counts as the capacity; with 0 or a negative one, a removal leaves no image.
    ///   - memoryPressure: A sequence with an element whenever the system needs memory, on which the cache is emptied;
    ///     ``MemoryPressure`` by default, `nil` for none. It is observed until it ends or the cache is released.
    public init(
        capacity: Int = 100 << 20, preferredUse: Int = 60 << 20,
        memoryPressure: (any AsyncSequence<Void, Never> & Sendable)? = MemoryPressure()
    ) {
        store = PurgingCache(capacity: capacity, preferredUse: preferredUse, memoryPressure: memoryPressure)
    }

    // MARK: Images

    /// Adds an image as the most recently accessed one, in place of one with the same key. It counts with its
    /// ``ImageContent/memoryCost``, and at least 1 KiB.
    ///
    /// If the use then exceeds ``capacity``, the images that were not accessed for the longest time are removed until
    /// it is at most ``preferredUseAfterPurge`` and ``capacity``. This image is removed last, if it alone exceeds that.
    public func add(_ image: ImageContent, for key: ImageCacheKey) {
        store.add(image, for: key, cost: image.memoryCost)
    }

    /// Returns an image and marks it as the most recently accessed one; `nil` if the cache does not have it.
    public func image(for key: ImageCacheKey) -> ImageContent? {
        store.value(for: key)
    }

    /// Removes an image.
    ///
    /// - Returns: Whether the cache contained an image with the key.
    @discardableResult
    public func remove(_ key: ImageCacheKey) -> Bool {
        store.remove(key)
    }

    /// Removes all images.
    ///
    /// - Returns: Whether the cache contained any image.
    @discardableResult
    public func removeAll() -> Bool {
        store.removeAll()
    }

    /// Removes the images that were not accessed for the longest time until the use is at most
    /// ``preferredUseAfterPurge`` and ``capacity``; has no effect if no more is in use. With 0 or a negative value of
    /// either, all images are removed.
    public func purge() {
        store.purge()
    }

    // MARK: Memory

    /// The memory in bytes that the images occupy: the sum of their ``ImageContent/memoryCost``, which counts their
    /// files and decoded pixels, and of at least 1 KiB for each; 0 without images.
    public var memoryUse: Int { store.use }

    /// The use of memory in bytes above which images are removed; 100 MiB by default. With 0 or a negative value, no
    /// image stays in the cache.
    ///
    /// A change removes no images at once: it takes effect when the next image is added, or ``purge()`` is called.
    public var capacity: Int {
        get { store.capacity }
        set { store.capacity = newValue }
    }

    /// The use of memory in bytes that a removal of images aims at; 60 MiB by default.
    ///
    /// A value above ``capacity`` counts as the capacity; with 0 or a negative one, a removal leaves no image. A change
    /// removes no images at once: it takes effect when an added image next exceeds the capacity, or ``purge()`` is
    /// called.
    public var preferredUseAfterPurge: Int {
        get { store.preferredUse }
        set { store.preferredUse = newValue }
    }
}

/// The key of an image in an ``AutoPurgingImageCache``: the URL, the header fields of the request, and optionally an
/// identifier for a variant of the image, such as a thumbnail.
///
/// URLs are compared as text, including a fragment, and identifiers as text, where `nil` differs from an empty one. A
/// URL with a base URL differs from the same absolute URL without one. Header fields are compared regardless of the
/// case of their names and of the order of different names.
public struct ImageCacheKey: Hashable, Sendable {
    private let url: URL
    private let headers: HTTPFields
    private let identifier: String?

    /// Creates a key from its parts.
    ///
    /// - Parameters:
    ///   - url: The URL of the image.
    ///   - headers: The header fields of the request, without those that the session adds, but with the
    ///     `Accept: image/*` of a request that ``ImageDownloader`` makes for a URL; empty by default. With other
    ///     credentials, for example, the image may be another one.
    ///   - identifier: An identifier for a variant made from the same file, such as a thumbnail; `nil`, the default,
    ///     for the image itself.
    public init(_ url: URL, headers: HTTPFields = [:], identifier: String? = nil) {
        self.url = url
        self.headers = headers
        self.identifier = identifier
    }

    /// Creates a key from the URL and the header fields of a request.
    ///
    /// ``ImageDownloader`` adds images under this key, with the identifier that it was created with, but only those of
    /// GET requests without a body, trailers, options and attributes of their own, apart from a cache policy. The
    /// requests that a downloader or an ``ImageSlot`` makes for a URL have the header field `Accept: image/*`.
    ///
    /// - Parameters:
    ///   - request: The request for the image; its method, body, cache policy and options are not part of the key.
    ///   - identifier: An identifier for a variant made from the same file, such as a thumbnail; `nil`, the default,
    ///     for the image itself.
    public init(_ request: Request, identifier: String? = nil) {
        self.init(request.url, headers: request.headers, identifier: identifier)
    }
}
