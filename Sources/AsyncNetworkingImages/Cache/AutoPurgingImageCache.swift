// SPDX-License-Identifier: MIT

/// A cache of images in memory.
///
/// If the images occupy more than ``capacity``, those that were not accessed for the longest time are removed until
/// ``preferredUseAfterPurge`` is reached; an image that alone is larger is removed at once. Under memory pressure all
/// images are removed. All members may be used from any thread or task at any time, and return immediately.
public final class AutoPurgingImageCache: Sendable {
    private let store: PurgingCache<ImageCacheKey, ImageContent>

    /// Creates an empty cache.
    ///
    /// - Parameters:
    ///   - capacity: The memory in bytes above which images are removed; 100 MiB by default.
    ///   - preferredUse: The memory in bytes that is in use after images were removed; 60 MiB by default.
    ///   - memoryPressure: A sequence with an element whenever the system needs memory; ``MemoryPressure`` by default,
    ///     `nil` for none.
    public init(
        capacity: Int = 100 << 20, preferredUse: Int = 60 << 20,
        memoryPressure: (any AsyncSequence<Void, Never> & Sendable)? = MemoryPressure()
    ) {
        store = PurgingCache(capacity: capacity, preferredUse: preferredUse, memoryPressure: memoryPressure)
    }

    // MARK: Images

    /// Adds an image, in place of one with the same key.
    public func add(_ image: ImageContent, for key: ImageCacheKey) {
        store.add(image, for: key, cost: image.memoryCost)
    }

    /// Returns an image and marks it as accessed; `nil` if the cache does not have it.
    public func image(for key: ImageCacheKey) -> ImageContent? {
        store.value(for: key)
    }

    /// Removes an image. Returns whether the cache had it.
    @discardableResult
    public func remove(_ key: ImageCacheKey) -> Bool {
        store.remove(key)
    }

    /// Removes all images. Returns whether there were any.
    @discardableResult
    public func removeAll() -> Bool {
        store.removeAll()
    }

    /// Removes the images that were not accessed for the longest time until ``preferredUseAfterPurge`` is reached.
    public func purge() {
        store.purge()
    }

    // MARK: Memory

    /// The memory in bytes that the images occupy; see ``ImageContent/memoryCost``.
    public var memoryUse: Int { store.use }

    /// The memory in bytes above which images are removed. A change takes effect when the next image is added.
    public var capacity: Int {
        get { store.capacity }
        set { store.capacity = newValue }
    }

    /// The memory in bytes that is in use after images were removed; at most the capacity. A change takes effect when the
    /// next image is added.
    public var preferredUseAfterPurge: Int {
        get { store.preferredUse }
        set { store.preferredUse = newValue }
    }
}
