// SPDX-License-Identifier: MIT

public import AsyncNetworkingImages

/// An image, in place of UIKit's `UIImage`: its file, its format and size, and its pixels if it was decoded.
public final class AFImage: NSObject, Sendable {
    /// The file, the header and the pixels.
    public let content: ImageContent

    /// Creates an image.
    public init(_ content: ImageContent) {
        self.content = content
        super.init()
    }

    /// Creates an image from a file; `nil` if its format is unknown, or it exceeds the default limits.
    public convenience init?(data: Data, scale: CGFloat = 1) {
        guard let content = try? ImageContent(data, scale: scale) else { return nil }
        self.init(content)
    }

    /// The size in points: that in pixels, divided by the scale.
    public var size: CGSize { CGSize(width: content.pointSize.width, height: content.pointSize.height) }

    /// The number of pixels per point.
    public var scale: CGFloat { content.scale }

    /// The format and the size in pixels.
    public override var description: String { "<AFImage: \(content)>" }
}

/// The class of images in code that was written for UIKit.
public typealias UIImage = AFImage
