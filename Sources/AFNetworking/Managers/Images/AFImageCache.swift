// SPDX-License-Identifier: MIT

/// A cache of images by identifier. Its methods are called from any thread.
public protocol AFImageCache: NSObjectProtocol {
    /// Adds an image, in place of one with the same identifier.
    func add(_ image: UIImage, withIdentifier identifier: String)
    /// Removes an image. Returns whether the cache had it.
    @discardableResult
    func removeImage(withIdentifier identifier: String) -> Bool
    /// Removes all images. Returns whether there were any.
    @discardableResult
    func removeAllImages() -> Bool
    /// Returns an image; `nil` if the cache does not have it.
    func image(withIdentifier identifier: String) -> UIImage?
}

/// A cache of images by request and an additional identifier, for images made from the same file.
public protocol AFImageRequestCache: AFImageCache {
    /// Returns whether an ``AFImageDownloader`` adds an image.
    func shouldCache(
        _ image: UIImage, for request: URLRequest, withAdditionalIdentifier identifier: String?
    ) -> Bool
    /// Adds an image, in place of one with the same request and identifier.
    func add(_ image: UIImage, for request: URLRequest, withAdditionalIdentifier identifier: String?)
    /// Removes an image. Returns whether the cache had it.
    @discardableResult
    func removeImageforRequest(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> Bool
    /// Returns an image; `nil` if the cache does not have it.
    func imageforRequest(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> UIImage?
}
