// SPDX-License-Identifier: MIT

public import AsyncNetworkingImages

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
