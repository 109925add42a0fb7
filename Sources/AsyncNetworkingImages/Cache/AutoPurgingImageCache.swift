// SPDX-License-Identifier: MIT

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
    /// ``ImageContent/memoryCost``.
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
    /// files and decoded pixels; 0 without images.
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
