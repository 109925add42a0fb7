// SPDX-License-Identifier: MIT

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
